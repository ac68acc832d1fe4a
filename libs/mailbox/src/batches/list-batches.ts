import { batchesKey, batchKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { BatchAccess } from './access.ts';
import { dropName } from './names.ts';
import { readBatch, type StoredBatch } from './read-batch.ts';

/** Batches that are read at once. */
const AT_ONCE = 100;

/** Yields the detached batches of a tenant, and drops the names of those of which nothing is stored any more. */
export async function* listBatches(
  access: Omit<BatchAccess, 'keys'>,
  { namespace, tenant }: { namespace: string; tenant: string },
): AsyncGenerator<StoredBatch> {
  const list = batchesKey(namespace, tenant);
  const namesWithTimes = await access.redis.zrange(list, '0', '-1', 'WITHSCORES').catch(throwQueueError);
  for (let at = 0; at < namesWithTimes.length; at += 2 * AT_ONCE) {
    const some = namesWithTimes.slice(at, at + 2 * AT_ONCE);
    const reads = some.flatMap((name, index) => {
      if (index % 2 === 1) return [];
      return [readOrDrop({ ...access, keys: batchKeys(namespace, tenant, name) }, some[index + 1])];
    });
    for (const batch of await Promise.all(reads)) if (batch !== undefined) yield batch;
  }
}

async function readOrDrop(access: BatchAccess, time: string | undefined): Promise<StoredBatch | undefined> {
  const batch = await readBatch(access);
  // A caller that may only read leaves the name to others.
  if (batch === undefined) await dropName(access, time).catch(() => {});
  return batch;
}
