/** The session that a queue would hand out next. */
export interface QueueHead {
  /** 0 is first */
  priority: number;
  /** when it was added, ms by the clock of the process that added it */
  addedAt: number;
}

/**
 * The order in which a host that offers several queues fetches from them: by priority, then by how long the head has waited. So a host with
 * two policies takes sessions in the order in which it would take them from one line. Empty queues are left out.
 *
 * Fairness between tenants belongs here: with a queue per class and tenant, this function weighs their heads.
 */
export function fetchOrder<T>(queues: readonly { name: T; head: QueueHead | undefined }[]): T[] {
  const waiting = queues.flatMap(({ name, head }) => (head === undefined ? [] : [{ name, ...head }]));
  return waiting.sort((a, b) => a.priority - b.priority || a.addedAt - b.addedAt).map(({ name }) => name);
}
