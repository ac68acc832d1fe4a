import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SharedTimer } from './shared-timer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a shared timer', () => {
  test('makes all of its calls on one timer, and has none without calls', () => {
    const timer = new SharedTimer(100);
    const calls: string[] = [];
    const [a, b] = [() => void calls.push('a'), () => void calls.push('b')];
    expect(vi.getTimerCount()).toBe(0);
    timer.add(a);
    timer.add(b);
    timer.add(a);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(200);
    expect(calls).toEqual(['a', 'b', 'a', 'b']);
    timer.remove(a);
    vi.advanceTimersByTime(100);
    expect(calls.slice(4)).toEqual(['b']);
    timer.remove(b);
    expect(vi.getTimerCount()).toBe(0);
    timer.add(a);
    vi.advanceTimersByTime(100);
    expect(calls.slice(5)).toEqual(['a']);
  });
});
