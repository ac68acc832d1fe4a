import { randomUUID } from 'node:crypto';
import { batchKeys, type FleetKeys, LIMITS } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineBatchScript, definePlainScript } from '../scripts.ts';
import { type BatchAccess, type BatchLease, batchMember, runOnBatch } from './access.ts';
import { BATCH_LEASE_MS, releaseBatch } from './drive-batch.ts';
import { putOffScript } from './names.ts';
import { readBatch, readBatchOptions, type StoredBatch } from './read-batch.ts';

const dueScript = definePlainScript('batches/due');
const takeScript = defineBatchScript('take');

/** Time until another host looks at a batch that this one has found. */
const LOOK_MS = 5_000;
/** Time until the next look at a batch that is still being stored. */
const STORING_LOOK_MS = 2_000;

/** A batch at which a host should look now. */
export interface DueBatch {
  tenant: string;
  name: string;
  /** Its score in the list, as this host set it. */
  score: string;
}

/**
 * Returns up to `most` batches that may wait for a driver. For some seconds no other host gets them. Tenants with fewer
 * batches in `driven`, which has the tenant of each batch that this host drives, come first.
 */
export async function readDueBatches(
  redis: Redis,
  fleet: FleetKeys,
  most: number,
  driven: readonly string[] = [],
): Promise<DueBatch[]> {
  const args = [most, LOOK_MS, LIMITS.idChars, LIMITS.batchNameChars, ...driven];
  const reply = await runScript(redis, dueScript, [fleet.batchesNoted, fleet.batches], args);
  return toDue(asArray(reply, dueScript.name).map(asString));
}

/** Batches that are read at once. */
const AT_ONCE = 100;

/** Returns the batches whose driver is or was a process of this host. It reads the state of each open batch. */
export async function listOwnBatches(redis: Redis, fleet: FleetKeys, host: string): Promise<DueBatch[]> {
  const all = await redis.zrange(fleet.batches, '0', '-1', 'WITHSCORES').catch(throwQueueError);
  const own: DueBatch[] = [];
  for (let at = 0; at < all.length; at += 2 * AT_ONCE) {
    const reads = toDue(all.slice(at, at + 2 * AT_ONCE)).map(async (due) => {
      const { state } = batchKeys(fleet.namespace, due.tenant, due.name);
      const [phase, driver] = await redis.hmget(state, 'state', 'host').catch(throwQueueError);
      return phase === 'running' && driver === host ? [due] : [];
    });
    own.push(...(await Promise.all(reads)).flat());
  }
  return own;
}

/** Parses members of the list and their scores, alternately. */
function toDue(texts: readonly string[]): DueBatch[] {
  return texts.flatMap((member, at) => {
    if (at % 2 === 1) return [];
    const [tenant = '', name = ''] = member.split(' ');
    return [{ tenant, name, score: texts[at + 1] ?? '' }];
  });
}

/** Lets hosts look at a batch in `ms`, or never again, unless it was noted in between. */
export async function putOffBatch(
  redis: Redis,
  fleet: FleetKeys,
  due: DueBatch,
  ms: number | undefined,
): Promise<void> {
  await runScript(redis, putOffScript, [fleet.batches], [batchMember(due), due.score, ms ?? '']);
}

/**
 * Takes the lease of a batch that waits, or whose driver has not renewed it. Resolves with undefined when there is
 * nothing to drive now.
 */
export async function takeBatch(
  access: BatchAccess,
  due: DueBatch,
  host: string,
): Promise<{ lease: BatchLease; batch: StoredBatch; options: unknown } | undefined> {
  const { redis, fleet } = access;
  const reply = asArray(await runOnBatch(access, takeScript, [host, randomUUID(), BATCH_LEASE_MS]), takeScript.name);
  if (reply[0] !== 1) {
    const [phase, left] = [asString(reply[1]), asNumber(reply[2])];
    const isOpen = phase === 'storing' || phase === 'running';
    await putOffBatch(redis, fleet, due, isOpen ? Math.max(left, STORING_LOOK_MS) : undefined);
    return undefined;
  }
  const [, id, fence, pieces, takes] = reply;
  const lease: BatchLease = {
    ...{ ...access, id: asString(id), fence: asNumber(fence), host },
    ...{ next: asNumber(pieces) + 1, takes: asNumber(takes) },
  };
  try {
    await putOffBatch(redis, fleet, due, BATCH_LEASE_MS);
    const batch = await readBatch(access);
    if (batch === undefined) return undefined;
    return { lease, batch, options: await readBatchOptions(access, lease.id) };
  } catch (error) {
    // Another host may have the seal key.
    await releaseBatch(lease, { counts: false }).catch(() => {});
    throw error;
  }
}
