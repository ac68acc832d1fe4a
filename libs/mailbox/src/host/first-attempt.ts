import { recordKey, tryJson, type WireResult, wireResultSchema } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Owner } from './owner.ts';

/**
 * Reads the Result of an entry's first attempt. `refused` is the reason why the entry gets no second attempt. Throws
 * QUEUE_UNAVAILABLE.
 */
export async function readFirstResult(
  { redis, keys }: Pick<Owner, 'redis' | 'keys'>,
  entryId: string,
  refused: string,
): Promise<WireResult | undefined> {
  const [end, fields] = await redis.hmget(recordKey(keys, entryId), 'firstEnd', 'firstFields').catch(throwQueueError);
  const [own, rest] = [tryJson(end ?? ''), tryJson(fields ?? '')];
  if (typeof own !== 'object' || typeof rest !== 'object') return undefined;
  return wireResultSchema.safeParse({ ...own, refused, ...rest }).data;
}
