import { batchesKey } from '@shellfleet/protocol';
import { retentionOf, runScript, throwQueueError } from '@shellfleet/redis';
import { definePlainScript } from '../scripts.ts';
import type { BatchAccess } from './access.ts';

// NAMES-1. A name is in the list of its tenant from the claim on, until nothing is stored of its batch. It has infinity
//     as its time only from when the batch is about to be committed until its end, so the name of a submitter that has
//     died does not stay.

export const putOffScript = definePlainScript('batches/put-off');

type Named = Pick<BatchAccess, 'redis' | 'keys'>;

const listOf = ({ keys }: Named) => batchesKey(keys.namespace, keys.tenant);

/** Keeps the name in the list for `ms`. */
export async function keepNameFor(access: Named, ms: number): Promise<void> {
  await runScript(access.redis, putOffScript, [listOf(access)], [access.keys.name, '', ms]);
}

/** Keeps the name in the list until the batch has ended. */
export async function keepName(access: Named): Promise<void> {
  await access.redis.zadd(listOf(access), '+inf', access.keys.name).catch(throwQueueError);
}

/** Reads the time of the name, for `dropName`. */
export async function readNameTime(access: Named): Promise<string | undefined> {
  return (await access.redis.zscore(listOf(access), access.keys.name).catch(throwQueueError)) ?? undefined;
}

/** Removes the name, unless its time has changed since it was read: then another batch has it. */
export async function dropName(access: Named, time: string | undefined): Promise<void> {
  if (time !== undefined) await runScript(access.redis, putOffScript, [listOf(access)], [access.keys.name, time, '']);
}

/** Keeps the name of an ended batch in the list for the retention, and drops those whose time is over. */
export async function expireName(access: Named): Promise<void> {
  const { redis, keys } = access;
  await keepNameFor(access, retentionOf(redis, keys.namespace));
  const [seconds = 0] = await redis.time().catch(throwQueueError);
  await redis.zremrangebyscore(listOf(access), '-inf', Number(seconds) * 1_000).catch(throwQueueError);
}
