/** The place of a session in the line of its queue. */
export interface QueuePlace {
  /** 0 is first */
  priority: number;
  /** when it was added, ms by the clock of the process that added it */
  addedAt: number;
}

/**
 * Joins the lines of several queues to the one in which a host takes sessions: of the heads, the one with the smallest priority is next, then the one
 * that has waited longest. Within a queue the order stays: what was handed out before is first, whatever its priority.
 *
 * Fairness between tenants belongs here: with a queue per class and tenant, this function weighs their heads.
 */
export function inOneLine<T extends QueuePlace>(lines: readonly (readonly T[])[]): T[] {
  const rests = lines.map((line) => [...line]);
  const joined: T[] = [];
  for (;;) {
    const first = rests
      .filter((rest) => rest.length > 0)
      .reduce<T[] | undefined>(
        (best, rest) => (best === undefined || isBefore(rest[0], best[0]) ? rest : best),
        undefined,
      );
    const next = first?.shift();
    if (next === undefined) return joined;
    joined.push(next);
  }
}

function isBefore(a: QueuePlace | undefined, b: QueuePlace | undefined): boolean {
  if (a === undefined || b === undefined) return b === undefined;
  return a.priority < b.priority || (a.priority === b.priority && a.addedAt < b.addedAt);
}
