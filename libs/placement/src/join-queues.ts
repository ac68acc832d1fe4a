/** What decides when a waiting session is next. */
export interface QueuePlace {
  /** priority of the session; 0 is first */
  priority: number;
  /** when it was added, ms by the clock of the process that added it */
  addedAt: number;
}

/**
 * Joins queues in the order in which hosts take sessions: by priority, then by waiting time, keeping each queue's
 * order.
 */
export function joinQueues<T extends QueuePlace>(queues: readonly (readonly T[])[]): T[] {
  const rests = queues.map((queue) => [...queue]);
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
