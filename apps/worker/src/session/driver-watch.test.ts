import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DriverWatch } from './driver-watch.ts';

// Mailbox of an idle session, which records the argument of each call. `driver`: a driver is alive.
const mailbox = {
  driver: false,
  asked: [] as string[],
  async closeUndriven(how: 'look' | 'close') {
    mailbox.asked.push(how);
    if (mailbox.driver) return { type: 'stays' } as const;
    return { type: how === 'close' ? 'closing' : 'undriven' } as const;
  },
};

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  Object.assign(mailbox, { driver: false, asked: [] });
});
afterEach(() => void vi.useRealTimers());

/** Looks at once, and after each pause as an idle session does. Returns the reply of the last look. */
async function idleFor(ms: number, watch: DriverWatch, activeAt: number) {
  const until = performance.now() + ms;
  let answer = await watch.look(activeAt);
  while (answer === 'stays' && performance.now() < until) {
    vi.advanceTimersByTime(watch.pauseMs ?? 5_000);
    answer = await watch.look(activeAt);
  }
  return answer;
}

describe('the watch of a driver', () => {
  test('costs no call for a session without a driver', async () => {
    const watch = new DriverWatch(mailbox, false);
    expect(await idleFor(60_000, watch, performance.now())).toBe('stays');
    expect(mailbox.asked).toEqual([]);
  });

  test('closes the session when the driver is missing twice, within 3 s', async () => {
    const watch = new DriverWatch(mailbox, true);
    const from = performance.now();
    expect(await idleFor(60_000, watch, from)).toBe('closing');
    expect({ asked: mailbox.asked, afterMs: performance.now() - from, gone: watch.gone }).toEqual({
      asked: ['look', 'close'],
      afterMs: 3_000,
      gone: true,
    });
  });

  test('keeps the session of a driver that renews its heartbeat between two looks', async () => {
    const watch = new DriverWatch(mailbox, true);
    const from = performance.now();
    await idleFor(1_000, watch, from);
    mailbox.driver = true;
    expect(await idleFor(2_000, watch, from)).toBe('stays');
    expect(await idleFor(20_000, watch, from)).toBe('stays');
    expect(watch.gone).toBe(false);
  });

  test('begins again after each command, and ignores a busy session', async () => {
    const watch = new DriverWatch(mailbox, true);
    await idleFor(1_000, watch, performance.now());
    expect(mailbox.asked).toEqual(['look']);
    vi.advanceTimersByTime(30_000);
    const from = performance.now();
    expect(await watch.look(from)).toBe('stays');
    expect(await idleFor(60_000, watch, from)).toBe('closing');
    expect(mailbox.asked).toEqual(['look', 'look', 'close']);
  });
});
