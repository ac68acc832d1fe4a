import { batchesKey, batchKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { BatchAccess } from './access.ts';
import { readBatch, type StoredBatch } from './read-batch.ts';

/** Batches that are read at once. */
const AT_ONCE = 100;

/** Yields the detached batches of a tenant. */
export async function* listBatches(
  access: Omit<BatchAccess, 'keys'>,
  { namespace, tenant }: { namespace: string; tenant: string },
): AsyncGenerator<StoredBatch> {
  const list = batchesKey(namespace, tenant);
  const names = await access.redis.zrange(list, '0', '-1').catch(throwQueueError);
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const some = names.slice(at, at + AT_ONCE);
    const read = (name: string) => readBatch({ ...access, keys: batchKeys(namespace, tenant, name) });
    for (const batch of await Promise.all(some.map(read))) if (batch !== undefined) yield batch;
  }
}
