import type { ClientEvent, History, Operation, SeenOutput, SeenResult } from './history.ts';

/** Observations of clients about one operation. A restarted client may have seen it twice. */
export interface OperationHistory {
  operation: Operation;
  submittedAt: number;
  /** Time of the first acceptance that was seen, or infinity. */
  acceptedAt: number;
  commandIds: string[];
  refusals: { at: number; code: string; retryable: boolean }[];
  results: SeenResult[];
  outputs: { stdout: SeenOutput; stderr: SeenOutput }[];
  expired: boolean;
  /** Time at which the first Result, or its expiry, was seen, or infinity. */
  endedAt: number;
}

/**
 * Returns the operations by session, in the order of their submits. Operations that were never submitted are left out.
 */
export function operationsOf(history: History): Map<string, OperationHistory[]> {
  const events = Map.groupBy(history.clientEvents, ({ op }) => op);
  return new Map(
    history.sessions.map(({ session, operations }) => [
      session,
      operations.flatMap((operation) => {
        const own = events.get(operation.id);
        return own === undefined ? [] : [toOperationHistory(operation, own)];
      }),
    ]),
  );
}

function toOperationHistory(operation: Operation, events: ClientEvent[]): OperationHistory {
  const of = <T extends ClientEvent['type']>(type: T) =>
    events.filter((event): event is Extract<ClientEvent, { type: T }> => event.type === type);
  const ends = [...of('result'), ...of('expired')].map(({ at }) => at);
  return {
    operation,
    submittedAt: Math.min(...events.map(({ at }) => at)),
    acceptedAt: Math.min(...of('accepted').map(({ at }) => at)),
    commandIds: [...new Set(of('accepted').map(({ commandId }) => commandId))],
    refusals: of('refused'),
    results: of('result').map(({ result }) => result),
    outputs: of('output'),
    expired: of('expired').length > 0,
    endedAt: ends.length === 0 ? Number.POSITIVE_INFINITY : Math.min(...ends),
  };
}
