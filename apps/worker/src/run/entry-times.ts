import type { Entry } from '@shellfleet/mailbox';
import type { Wait, WireReceipt, WireResult } from '@shellfleet/protocol';
import type { ShellOpening } from '../shell/opening.ts';
import { type Cause, explainWait, type WaitPart } from './explain-wait.ts';
import type { SessionTimes } from './session-times.ts';

export interface EntryTimes {
  timings: WireResult['timings'];
  receipt: WireReceipt;
}

/** How long a command ran on the shell, by the clock of this host. */
export interface RunTimes {
  runMs: number;
  firstOutputMs?: number | undefined;
}

/**
 * Returns where the time of an entry went, up to its end, or up to now if it never started. `opened` is the last
 * opening of the session's shell. Clocks may differ or be set, so no time is negative.
 */
export function timesOf(
  entry: Entry,
  times: SessionTimes,
  opened: ShellOpening,
  run: RunTimes = { runMs: 0 },
): EntryTimes {
  const { acceptedAt } = entry;
  const isStarted = entry.startedAt > 0;
  const { waitedTo, parts } = waitsOf(entry, times, opened);
  const waits = parts.map(({ wait, from, to }): [Wait, number] => [wait, to - from]);
  const waitedMs = waitedTo - acceptedAt;
  const startMs = waits.reduce((sum, [wait, ms]) => sum + (wait === 'image' || wait === 'opening' ? ms : 0), 0);
  const { runMs, firstOutputMs } = run;
  const openingMs = isStarted ? openedAfter(entry.startedAt, times, opened) : 0;
  return {
    timings: { queuedMs: waitedMs - startMs, startMs, runMs, totalMs: waitedMs + runMs },
    receipt: {
      acceptedAt,
      ...(!isStarted && { unstarted: true }),
      ...(waits.length > 0 && { waits }),
      ...(openingMs > 0 && { openingMs }),
      ...(firstOutputMs !== undefined && { firstOutputMs }),
    },
  };
}

/** Returns until when an entry waited for its start, or waits now, and what it waited for, by the clock of Redis. */
export function waitsOf(
  entry: Entry,
  times: SessionTimes,
  opened: ShellOpening,
): { waitedTo: number; parts: WaitPart[] } {
  const { acceptedAt, startedAt } = entry;
  const waitedTo = Math.max(acceptedAt, startedAt > 0 ? startedAt : times.toRedis(Date.now()));
  return { waitedTo, parts: explainWait({ from: acceptedAt, to: waitedTo }, causesOf(entry, times, opened, waitedTo)) };
}

/** Returns how long an opening took that came after the start of the entry, as when its shell has died since. */
function openedAfter(startedAt: number, times: SessionTimes, { from, to }: ShellOpening): number {
  // The middle counts, because the difference of the clocks is known only to the ms.
  return times.toRedis((from + to) / 2) > startedAt ? to - from : 0;
}

/** Returns for how long a person was asked about an entry that is still waiting. */
export function askedMs({ asked }: Pick<Entry, 'asked'>, times: SessionTimes): number {
  if (asked === undefined) return 0;
  return Math.max(0, (asked.to ?? times.toRedis(Date.now())) - asked.from);
}

/** Returns what the entry may have waited for until `waitedTo`, the most certain causes first. */
function causesOf(
  { acceptedAt, firstStartedAt, asked }: Entry,
  times: SessionTimes,
  { from, to, pull }: ShellOpening,
  waitedTo: number,
): Cause[] {
  const { ownedAt, freeAt } = times;
  const causes: Cause[] = [];
  if (asked !== undefined) causes.push({ wait: 'approval', from: asked.from, to: asked.to ?? waitedTo });
  if (pull !== undefined) causes.push({ wait: 'image', from: times.toRedis(pull.from), to: times.toRedis(pull.to) });
  if (to > 0) causes.push({ wait: 'opening', from: times.toRedis(from), to: times.toRedis(to) });
  const queuedTo = firstStartedAt ?? waitedTo;
  if (firstStartedAt !== undefined) causes.push({ wait: 'attempt', from: firstStartedAt, to: waitedTo });
  if (freeAt <= queuedTo) causes.push({ wait: 'earlier', from: acceptedAt, to: freeAt });
  // An entry that another owner started did not wait for this one.
  if (ownedAt <= queuedTo) causes.push({ wait: 'slot', from: acceptedAt, to: ownedAt });
  return causes;
}
