import { randomUUID } from 'node:crypto';
import { encodeWakeUp, encodeWireResult, newResult, type SessionKeys } from '@shellfleet/protocol';
import { asArray, asString, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('producer/cancel');

export type Cancelled =
  /** The entry never ran. The caller notifies `inbox` of `event`, and ensures the session's job if `needsJob`. */
  | { type: 'ended'; event: string; inbox: string; needsJob: boolean }
  /** The entry runs, and this host has to stop it. */
  | { type: 'marked'; host: string; generation: string }
  | { type: 'ended-before' }
  | { type: 'unknown' };

/** Most entries that one call cancels. A script blocks every other client, so a longer queue takes several calls. */
export const CANCELLED_IN_ONE_CALL = 2_000;

/** Returns the Result of an entry that is cancelled before it ran, as JSON. */
export function cancelledUnstarted(cancelReason: string): string {
  return encodeWireResult(newResult({ outcome: 'cancellation', reason: 'cancelled', cancelReason }));
}

export const CLOSED_UNSTARTED = cancelledUnstarted('session closed');

/**
 * Ends a waiting entry, or marks a running entry, which then ends as a cancellation. `signed` is the signed request.
 */
export async function cancel(
  redis: Redis,
  keys: SessionKeys,
  entryId: string,
  reason: string,
  signed = '',
): Promise<Cancelled> {
  const { tenant, session } = keys;
  const wakeUp = encodeWakeUp({ type: 'session', tenant, session });
  const args = [
    entryId,
    reason,
    cancelledUnstarted(reason),
    retentionOf(redis, keys.namespace),
    randomUUID(),
    keys.wakeUpsPrefix,
    wakeUp,
    signed,
  ];
  const reply = asArray(await runOnSession(redis, script, keys, args), script.name);
  if (reply[0] === 1) {
    const [, event, inbox, needsJob] = reply;
    return { type: 'ended', event: asString(event), inbox: asString(inbox), needsJob: needsJob === 1 };
  }
  if (reply[0] === 2) return { type: 'marked', host: asString(reply[1]), generation: asString(reply[2]) };
  return { type: reply[0] === 0 ? 'ended-before' : 'unknown' };
}
