import { type BatchAccess, type BatchLease, type NewBatch, readDueBatches, takeBatch } from '@shellfleet/mailbox';
import { batchKeys, fleetKeys } from '@shellfleet/protocol';
import { createSealer, createSealKey } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import { ulid } from 'ulid';
import { newNamespace } from './mailbox-session.ts';

/** Returns access to the batch `nightly` of the tenant `t1` in a new namespace. */
export function newBatchAccess(redis: Redis): BatchAccess {
  const namespace = newNamespace();
  return {
    ...{ redis, sealer: createSealer([createSealKey()]), fleet: fleetKeys(namespace) },
    keys: batchKeys(namespace, 't1', 'nightly'),
  };
}

export const newBatch = (more: Partial<NewBatch> = {}): NewBatch => ({
  ...{ id: ulid(), by: 'ada@desk', options: { repeats: 2 }, tasks: [{ task: { id: 'a', script: 'true' } }] },
  files: new Map(),
  ...more,
});

/** Does what a host does that looks for batches: it takes the first that it finds. */
export async function takeDue(access: BatchAccess, host: string) {
  const [due] = await readDueBatches(access.redis, access.fleet, 10);
  return due && takeBatch(access, due, host);
}

export async function takeAs(access: BatchAccess, host: string): Promise<BatchLease> {
  const taken = await takeDue(access, host);
  if (taken === undefined) throw new Error('nothing was due');
  return taken.lease;
}
