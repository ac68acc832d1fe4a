import { expect, test, vi } from 'vitest';
import { PendingAnswers } from './pending-answers.ts';

test('what waits is asked again after a gap, until it is answered', async () => {
  const answers = new PendingAnswers();
  const [ask, other] = [vi.fn(), vi.fn()];
  const { signal } = new AbortController();
  const answered = answers.expect('1', signal, ask);
  const waiting = answers.expect('2', signal, other);
  const without = answers.expect('3', signal);
  answers.askAgain();
  answers.settle('1', 'sealed');
  expect(await answered).toBe('sealed');
  answers.askAgain();
  expect([ask, other].map(({ mock }) => mock.calls.length)).toEqual([1, 2]);
  answers.settle('2', 'other');
  answers.settle('3', 'third');
  expect(await Promise.all([waiting, without])).toEqual(['other', 'third']);
});
