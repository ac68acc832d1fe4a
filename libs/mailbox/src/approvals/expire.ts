import { type ApprovalEnd, type ApprovalKeys, fleetKeys } from '@shellfleet/protocol';
import { asNumber, retentionOf, runScript, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';
import { type Asker, parseAsker, toAsker } from './ask.ts';
import { readAskersOf } from './read.ts';
import { stillAsks } from './still-asks.ts';

const expireScript = defineApprovalsScript('expire');
const withdrawScript = defineApprovalsScript('withdraw');
const forgetScript = defineApprovalsScript('forget-tenant');
const tidyScript = defineApprovalsScript('tidy');

const ENTRIES_OF_ONE_CALL = 500;
const EXPIRED = JSON.stringify({ state: 'expired' } satisfies ApprovalEnd);
const WITHDRAWN = JSON.stringify({ state: 'withdrawn' } satisfies ApprovalEnd);

/** Ends the questions whose time is over. Returns the number of entries that asked them. Throws QUEUE_UNAVAILABLE. */
export async function expireQuestions(redis: Redis, keys: ApprovalKeys): Promise<number> {
  const args = [keys.prefix, ENTRIES_OF_ONE_CALL, EXPIRED, retentionOf(redis, keys.namespace)];
  let expired = 0;
  for (;;) {
    const count = asNumber(await runScript(redis, expireScript, [keys.questions], args));
    expired += count;
    if (count < ENTRIES_OF_ONE_CALL) return expired;
  }
}

/** Removes entries that ask and are not held any more. Those stay that asked less than `sinceMs` ago. Throws QUEUE_UNAVAILABLE. */
export async function withdrawAskers(
  redis: Redis,
  keys: ApprovalKeys,
  askers: readonly Asker[],
  sinceMs: number,
): Promise<void> {
  if (askers.length === 0) return;
  const args = [keys.prefix, WITHDRAWN, retentionOf(redis, keys.namespace), sinceMs, ...askers.map(toAsker)];
  await runScript(redis, withdrawScript, [keys.questions], args);
}

/**
 * Removes the entries of a question that cannot run on an answer any more, so that an answer grants them nothing. Throws QUEUE_UNAVAILABLE.
 */
export async function withdrawEnded(redis: Redis, keys: ApprovalKeys, id: string): Promise<void> {
  const askers = await readAskersOf(redis, keys, id);
  for (let from = 0; from < askers.length; from += ENTRIES_OF_ONE_CALL) {
    const some = askers.slice(from, from + ENTRIES_OF_ONE_CALL);
    const asks = await Promise.all(some.map((asker) => stillAsks(redis, keys, asker)));
    await withdrawAskers(
      redis,
      keys,
      some.filter((_asker, index) => !asks[index]),
      0,
    );
  }
}

/** Reads some of the entries that ask, beginning at a place among them. Throws QUEUE_UNAVAILABLE. */
export async function readAskers(redis: Redis, keys: ApprovalKeys, from: number, most: number): Promise<Asker[]> {
  const members = await redis.zrange(keys.pending, String(from), String(from + most - 1)).catch(throwQueueError);
  return members.flatMap((member) => parseAsker(member) ?? []);
}

/** Whether this entry asks a question that is pending. Throws QUEUE_UNAVAILABLE. */
export async function isAsking(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<boolean> {
  return (await redis.hexists(keys.asked, toAsker(asker)).catch(throwQueueError)) === 1;
}

/**
 * Removes a tenant that asks nothing from the list of those that ask, unless it has asked since its `score` was read, and what it has left in
 * Redis for good. Throws QUEUE_UNAVAILABLE.
 */
export async function forgetAskingTenant(redis: Redis, keys: ApprovalKeys, score: string): Promise<void> {
  await runScript(redis, tidyScript, [keys.questions], [keys.prefix]);
  await runScript(redis, forgetScript, [fleetKeys(keys.namespace).asking], [keys.tenant, score]);
}
