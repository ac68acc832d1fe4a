import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { spreadLooks } from './spread-looks.ts';

const notify = vi.fn();
beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  notify.mockReset();
});

describe('a look at the queue after a wake-up', () => {
  test('is at once in a fleet of a few hosts', () => {
    spreadLooks({ notify }, () => 4).notify();
    expect(notify).toHaveBeenCalledOnce();
  });

  test('is within a fifth of a millisecond for each host, at most 50 ms', () => {
    for (const [hosts, mostMs] of [
      [100, 20],
      [10_000, 50],
    ] as const) {
      notify.mockReset();
      spreadLooks(
        { notify },
        () => hosts,
        () => 0.9,
      ).notify();
      vi.advanceTimersByTime(0.8 * mostMs);
      expect(notify).not.toHaveBeenCalled();
      vi.advanceTimersByTime(0.2 * mostMs);
      expect(notify).toHaveBeenCalledOnce();
    }
  });

  test('is shared by the wake-ups that come before it', () => {
    const looks = spreadLooks({ notify }, () => 100);
    looks.notify();
    looks.notify();
    vi.advanceTimersByTime(20);
    expect(notify).toHaveBeenCalledOnce();
    looks.notify();
    vi.advanceTimersByTime(20);
    expect(notify).toHaveBeenCalledTimes(2);
  });
});
