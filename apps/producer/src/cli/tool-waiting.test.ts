import { isShellfleetError, type ShellfleetError, type ToolWait } from '@shellfleet/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { exitCodeOfError } from './exit-codes.ts';
import { sayWhyItWaits } from './tool-waiting.ts';

const AWAY: ToolWait = { because: 'no-host', message: "No live host offers the tool 'add'." };
const BUSY: ToolWait = { because: 'busy', message: "Every host that offers the tool 'add' is busy (h1)." };

beforeEach(() => vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => vi.useRealTimers());

function start(isTerminal: boolean, startDeadlineMs?: number) {
  const said: string[] = [];
  const ends: ShellfleetError[] = [];
  const terminal = { isTerminal, say: (text: string) => void said.push(text) };
  const onHopeless = (reason: ShellfleetError) => void ends.push(reason);
  return { said, ends, onWaiting: sayWhyItWaits(terminal, 'add', { startDeadlineMs, onHopeless }) };
}

describe('the wait of a tool call', () => {
  test('is reported once for each reason in a row', () => {
    const { said, onWaiting } = start(false);
    for (const wait of [AWAY, AWAY, BUSY, BUSY, { because: 'redis', message: 'No Redis.' } as const]) onWaiting(wait);
    expect(said).toEqual([
      "No live host offers the tool 'add'. The call of add waits until one can take it.",
      "Every host that offers the tool 'add' is busy (h1). The call of add waits until one has room.",
      'No Redis. The call of add waits until Redis is back.',
    ]);
  });

  test('ends after ten minutes without a terminal when no live host can take the call', () => {
    const { ends, onWaiting } = start(false);
    vi.advanceTimersByTime(10 * 60_000 - 1);
    onWaiting(AWAY);
    expect(ends).toEqual([]);
    vi.advanceTimersByTime(1);
    onWaiting(AWAY);
    expect(ends.map((error) => [isShellfleetError(error), exitCodeOfError(error), error.message])).toEqual([
      [
        true,
        124,
        "No live host offers the tool 'add'. No host could run it within 10 min, so nothing was run. --start-deadline sets how long to wait.",
      ],
    ]);
  });

  test.each<[string, boolean, number | undefined, ToolWait]>([
    ['at a terminal', true, undefined, AWAY],
    ['with a start deadline, which the call itself has', false, 60_000, AWAY],
    ['for room', false, undefined, BUSY],
  ])('does not end after ten minutes %s', (_when, isTerminal, startDeadlineMs, wait) => {
    const { ends, onWaiting } = start(isTerminal, startDeadlineMs);
    vi.advanceTimersByTime(60 * 60_000);
    onWaiting(wait);
    expect(ends).toEqual([]);
  });
});
