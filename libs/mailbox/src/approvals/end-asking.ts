import type { ApprovalKeys } from '@shellfleet/protocol';
import { asNumber, retentionOf, runScript, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';
import { type Asker, parseAsker, toAsker } from './ask.ts';
import { readAskersOf } from './read.ts';
import { stillAsks } from './still-asks.ts';

const endScript = defineApprovalsScript('end-asking');

const ASKERS_OF_ONE_CALL = 500;

/**
 * Removes the askers whose time is over, and ends questions without askers. Returns the number of removed askers.
 * Throws QUEUE_UNAVAILABLE.
 */
export async function expireQuestions(redis: Redis, keys: ApprovalKeys): Promise<number> {
  let expired = 0;
  for (;;) {
    const count = await endAsking(redis, keys, 'expired', [ASKERS_OF_ONE_CALL]);
    expired += count;
    if (count < ASKERS_OF_ONE_CALL) return expired;
  }
}

/** Removes askers from their questions. Throws QUEUE_UNAVAILABLE. */
export async function withdrawAskers(redis: Redis, keys: ApprovalKeys, askers: readonly Asker[]): Promise<void> {
  if (askers.length > 0) await endAsking(redis, keys, 'withdrawn', askers.map(toAsker));
}

async function endAsking(
  redis: Redis,
  keys: ApprovalKeys,
  how: 'expired' | 'withdrawn',
  askers: readonly (string | number)[],
): Promise<number> {
  const args = [keys.prefix, how, retentionOf(redis, keys.namespace), ...askers];
  return asNumber(await runScript(redis, endScript, [keys.questions], args));
}

/** Withdraws the ended askers of a question, so that an answer grants them nothing. Throws QUEUE_UNAVAILABLE. */
export async function withdrawEndedOf(redis: Redis, keys: ApprovalKeys, id: string): Promise<void> {
  const askers = await readAskersOf(redis, keys, id);
  for (let from = 0; from < askers.length; from += ASKERS_OF_ONE_CALL)
    await withdrawEnded(redis, keys, askers.slice(from, from + ASKERS_OF_ONE_CALL));
}

/** Withdraws those of the given askers that have ended. Throws QUEUE_UNAVAILABLE. */
export async function withdrawEnded(redis: Redis, keys: ApprovalKeys, askers: readonly Asker[]): Promise<void> {
  const asks = await Promise.all(askers.map((asker) => stillAsks(redis, keys, asker)));
  await withdrawAskers(
    redis,
    keys,
    askers.filter((_asker, index) => !asks[index]),
  );
}

/** Reads up to `most` askers of a tenant, from the index `from` on. Throws QUEUE_UNAVAILABLE. */
export async function readAskers(redis: Redis, keys: ApprovalKeys, from: number, most: number): Promise<Asker[]> {
  const members = await redis.zrange(keys.pending, String(from), String(from + most - 1)).catch(throwQueueError);
  return members.flatMap((member) => parseAsker(member) ?? []);
}
