import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CallDeadlines } from './call-rules.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('deadlines of calls', () => {
  test('report once each call that has not settled in time', () => {
    const late: string[] = [];
    const deadlines = new CallDeadlines<{ name: string; isSettled: boolean }>(({ name }) => late.push(name));
    const [long, answered, short] = ['long', 'answered', 'short'].map((name) => ({ name, isSettled: false }));
    deadlines.begin(long!, 2_000);
    deadlines.begin(answered!, 1_000);
    deadlines.begin(short!, 1_000);
    vi.advanceTimersByTime(900);
    answered!.isSettled = true;
    expect(late).toEqual([]);
    vi.advanceTimersByTime(200);
    expect(late).toEqual(['short']);
    vi.advanceTimersByTime(800);
    expect(late).toEqual(['short']);
    vi.advanceTimersByTime(5_000);
    expect(late).toEqual(['short', 'long']);
    expect(vi.getTimerCount()).toBe(0);
  });
});
