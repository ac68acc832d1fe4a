import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CountedEvents } from './counted-events.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function stage() {
  const written: string[] = [];
  const events = new CountedEvents<string>({
    write: (event, count) => written.push(`${count} ${event}`),
    writeOthers: (count) => written.push(`${count} others`),
  });
  return { written, events };
}

describe('counted events', () => {
  test('writes an event at once, and the number of its repetitions after a minute', () => {
    const { written, events } = stage();
    for (const event of ['a', 'b', 'a', 'a']) events.add(event, event);
    expect(written).toEqual(['1 a', '1 b']);
    vi.advanceTimersByTime(60_000);
    expect(written).toEqual(['1 a', '1 b', '2 a']);
    events.add('a', 'a');
    expect(written.at(-1)).toBe('1 a');
  });

  test('writes at most seventeen records a minute, and counts every event', () => {
    const { written, events } = stage();
    for (let n = 0; n < 100_000; n += 1) events.add(`${n}`, 'x');
    events.flush();
    expect(written).toEqual([...Array(16).fill('1 x'), '99984 others']);
    vi.advanceTimersByTime(60_000);
    expect(written).toHaveLength(17);
  });
});
