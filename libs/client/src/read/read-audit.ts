import { setTimeout as delay } from 'node:timers/promises';
import { readAuditRecords, type SealedAuditRecords } from '@shellfleet/mailbox';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';

const AT_ONCE = 50;
const EVERY_MS = 1_000;

export interface ReadAuditOptions {
  /** Id of the first entry, or a time in ms. Default: the oldest one. */
  from?: string | undefined;
  /** Whether entries that come later are read too. */
  follow?: boolean | undefined;
  /** Signal that ends the reading. */
  signal?: AbortSignal | undefined;
}

/** Reads the entries of the audit in Redis. */
export async function* readStoredAudit(
  { redis, namespace }: Pick<FleetContext, 'redis' | 'namespace'>,
  { from = '-', follow = false, signal }: ReadAuditOptions,
): AsyncGenerator<SealedAuditRecords> {
  let start = from;
  while (!signal?.aborted) {
    const read = () => readAuditRecords(redis, namespace, start, AT_ONCE);
    const entries = await (follow ? retryWhileRedisIsDown(read, signal, { errorReplies: 'throw' }) : read());
    for (const entry of entries) {
      yield entry;
      start = `(${entry.id}`;
    }
    if (entries.length === AT_ONCE) continue;
    if (!follow) return;
    await delay(EVERY_MS, undefined, { signal }).catch(() => {});
  }
}
