import { readRecord, readStoredSession } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/**
 * Returns the host of an entry: the owner of its session while it runs, as that may have adopted it, else the host that
 * started it. Empty or undefined without one.
 */
export async function hostOfEntry(redis: Redis, keys: SessionKeys, entryId: string): Promise<string | undefined> {
  const record = await readRecord(redis, keys, entryId);
  if (record?.state !== 'running') return record?.host;
  return (await readStoredSession(redis, keys))?.host || record.host;
}
