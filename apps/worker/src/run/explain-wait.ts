import type { Wait } from '@shellfleet/protocol';
import type { Interval } from '../shell/opening.ts';

/** A possible cause of a wait. Of two causes at the same time, the first one in a list counts. */
export type Cause = Interval & { wait: Wait };

/** A part of a wait, with its cause. */
export type WaitPart = Interval & { wait: Wait };

/**
 * Divides the time of a wait among its causes, in their order. Time without a cause counts as `waiting`, and is left
 * out at the end of the wait.
 */
export function explainWait({ from, to }: Interval, causes: readonly Cause[]): WaitPart[] {
  const active = causes.filter((cause) => cause.from < to && cause.to > from && cause.from < cause.to);
  if (active.length === 0) return [];
  const ends = active.flatMap((cause) => [Math.max(from, cause.from), Math.min(to, cause.to)]);
  const cuts = [...new Set([from, ...ends])].sort((a, b) => a - b);
  const parts: WaitPart[] = [];
  for (const [index, end] of cuts.slice(1).entries()) {
    const begin = cuts[index] ?? from;
    const wait = active.find((cause) => cause.from <= begin && cause.to >= end)?.wait ?? 'waiting';
    const last = parts.at(-1);
    if (last?.wait === wait) last.to = end;
    else parts.push({ wait, from: begin, to: end });
  }
  return parts;
}
