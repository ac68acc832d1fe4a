import { describe, expect, test, vi } from 'vitest';
import { PendingReplies } from './pending-replies.ts';

describe('pending replies', () => {
  test('repeat each request after a gap until its reply arrives', async () => {
    const replies = new PendingReplies();
    const [ask, other] = [vi.fn(), vi.fn()];
    const { signal } = new AbortController();
    const answered = replies.expect('1', signal, ask);
    const waiting = replies.expect('2', signal, other);
    const without = replies.expect('3', signal);
    replies.requestAgain();
    replies.settle('1', 'sealed');
    expect(await answered).toBe('sealed');
    replies.requestAgain();
    expect([ask, other].map(({ mock }) => mock.calls.length)).toEqual([1, 2]);
    replies.settle('2', 'other');
    replies.settle('3', 'third');
    expect(await Promise.all([waiting, without])).toEqual(['other', 'third']);
  });
});
