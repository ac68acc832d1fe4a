import type { Wait } from '@shellfleet/protocol';

export interface Interval {
  from: number;
  to: number;
}

/** A possible cause of a wait. Of two causes at the same time, the first one in a list counts. */
export type Cause = Interval & { wait: Wait };

/**
 * Divides the time of a wait among its causes, in their order. Time without a cause counts as `waiting`, and is left
 * out at the end of the wait.
 */
export function explainWait({ from, to }: Interval, causes: readonly Cause[]): [Wait, number][] {
  const active = causes.filter((cause) => cause.from < to && cause.to > from && cause.from < cause.to);
  if (active.length === 0) return [];
  const ends = active.flatMap((cause) => [Math.max(from, cause.from), Math.min(to, cause.to)]);
  const cuts = [...new Set([from, ...ends])].sort((a, b) => a - b);
  const parts: [Wait, number][] = [];
  for (const [index, end] of cuts.slice(1).entries()) {
    const begin = cuts[index] ?? from;
    const wait = active.find((cause) => cause.from <= begin && cause.to >= end)?.wait ?? 'waiting';
    const last = parts.at(-1);
    if (last?.[0] === wait) last[1] += end - begin;
    else parts.push([wait, end - begin]);
  }
  return parts;
}
