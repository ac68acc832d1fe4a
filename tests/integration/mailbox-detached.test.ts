import {
  appendResults,
  type BatchAccess,
  blobNameOf,
  cancelBatch,
  endBatch,
  listBatches,
  readBatch,
  readBlob,
  readDueBatches,
  readManifest,
  readOutput,
  readResultLines,
  readTasks,
  releaseBatch,
  removeBatch,
  renewBatch,
  type StoredTask,
  storeBatch,
  storeManifest,
  storeOutputs,
} from '@shellfleet/mailbox';
import { batchKeys, LIMITS } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import { ulid } from 'ulid';
import { beforeEach, describe, expect, test } from 'vitest';
import { newBatch, newBatchAccess, takeAs as takeAsHost, takeDue } from '../support/detached-batch.ts';
import { redis, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

// What is stored of a detached batch, and who may change it.

let sealer: Sealer;
let access: BatchAccess;
let namespace: string;
beforeEach(() => {
  access = newBatchAccess(redis);
  ({ sealer } = access);
  ({ namespace } = access.keys);
});

const take = (host: string) => takeDue(access, host);
const takeAs = (host: string) => takeAsHost(access, host);

/** Lets the time of the present driver be over. */
async function outlive(): Promise<void> {
  await redis.hset(access.keys.state, 'leaseUntil', 1);
  await redis.zadd(access.fleet.batches, 1, 't1 nightly');
}

async function storedLines(id: string): Promise<string[]> {
  const pages = await Array.fromAsync(readResultLines(access, id));
  return pages.flatMap(({ lines }) => lines);
}

const lives = async () => Promise.all((await redis.keys(`${namespace}:{t1:batch/*`)).map((key) => redis.pttl(key)));

describe('a detached batch', () => {
  test('has its tasks, files and options for the host that takes it', async () => {
    const packed = Buffer.alloc(2_500_000, 'packed');
    const blob = blobNameOf(sealer, packed);
    const long = { task: { id: 'long', script: 'x'.repeat(1_500_000) }, blobs: { '/workspace/f': [blob] } };
    const tasks: StoredTask[] = [...Array.from({ length: 3_000 }, (_, n) => ({ task: { id: `${n}` } })), long];
    const batch = newBatch({ tasks, files: new Map([[blob, packed]]) });
    expect(await storeBatch(access, batch)).toBe('stored');
    const taken = await take('h1');
    expect(taken).toMatchObject({ batch: { state: 'running', by: 'ada@desk', tasks: 3_001 }, options: { repeats: 2 } });
    expect(await Array.fromAsync(readTasks(access, batch.id))).toEqual(tasks);
    expect(Buffer.concat(await Array.fromAsync(readBlob(access, batch.id, blob))).equals(packed)).toBe(true);
    expect(await Array.fromAsync(listBatches(access, { namespace, tenant: 't1' }))).toMatchObject([{ id: batch.id }]);
    expect((await lives()).every((life) => life === -1)).toBe(true);
  });

  test('is refused when it is too large, and nothing of it is stored', async () => {
    const packed = Buffer.alloc(LIMITS.detachedBatchBytes * 0.8);
    const files = new Map([['blob', packed]]);
    await expect(storeBatch(access, newBatch({ files }))).rejects.toMatchObject({ code: 'BATCH_TOO_LARGE' });
    expect(await redis.keys(`${namespace}:*`)).toEqual([]);
  });

  test('is stored once when it is submitted again, and refuses another of its name', async () => {
    await storeBatch(access, newBatch());
    expect(await storeBatch(access, newBatch())).toBe('same');
    await expect(storeBatch(access, newBatch({ options: {} }))).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
      message: expect.stringContaining('nightly and is waiting'),
    });
  });

  test('has one driver, which another one follows when its lease is over', async () => {
    const batch = newBatch();
    await storeBatch(access, batch);
    const first = await takeAs('h1');
    await appendResults(first, ['1', '2']);
    await redis.zadd(access.fleet.batches, 1, 't1 nightly');
    expect(await take('h2')).toBeUndefined();
    await outlive();
    const second = await takeAs('h2');
    await expect(appendResults(first, ['3'])).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await expect(renewBatch(first)).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await expect(storeOutputs(first, 'a', [{ path: '/o', packed: Buffer.of(1) }])).rejects.toThrow('does not drive');
    await appendResults(second, ['4']);
    expect(await storedLines(batch.id)).toEqual(['1', '2', '4']);
    await releaseBatch(second, { counts: false });
    await appendResults(await takeAs('h1'), ['5']);
    expect(await readBatch(access)).toMatchObject({ host: 'h1', lines: 4 });
  });

  test('ends when it is cancelled after its last driver has been gone for a while', async () => {
    const { id } = newBatch();
    await storeBatch(access, newBatch({ id }));
    await takeAs('h1');
    await redis.hset(access.keys.state, 'leaseUntil', Date.now() - 9_000);
    expect(await cancelBatch(access, id, 'enough')).toBe('asked');
    await redis.hset(access.keys.state, 'leaseUntil', Date.now() - 10_000);
    expect(await cancelBatch(access, id, 'enough')).toBe('ended');
  });

  test('waits for its turn behind those of tenants that have fewer', async () => {
    const waiting = ['t1 a', 't1 b', 't1 c', 't2 a', 't3 a'];
    await redis.lpush(access.fleet.batchesNoted, ...waiting);
    const due = await readDueBatches(redis, access.fleet, 4, ['t2']);
    expect(due.map(({ tenant, name }) => `${tenant} ${name}`)).toEqual(['t1 a', 't3 a', 't1 b', 't2 a']);
  });

  test('counts its manifest among its results, as it is now', async () => {
    await storeBatch(access, newBatch());
    const lease = await takeAs('h1');
    for (const text of ['x'.repeat(5_000), 'x']) await storeManifest(lease, { text });
    const [bytes, manifest] = await redis.hmget(access.keys.state, 'resultBytes', 'manifest');
    expect(Number(bytes)).toBe(manifest?.length);
  });

  test('counts its drivers that died without a line', async () => {
    await storeBatch(access, newBatch());
    const takes = async () => {
      await outlive();
      return (await takeAs('h2')).takes;
    };
    expect([(await takeAs('h1')).takes, await takes(), await takes()]).toEqual([1, 2, 3]);
    await outlive();
    await releaseBatch(await takeAs('h1'), { counts: false });
    await releaseBatch(await takeAs('h1'), { counts: true });
    const last = await takeAs('h1');
    expect(last.takes).toBe(5);
    await appendResults(last, ['1']);
    expect(await takes()).toBe(1);
  });

  test('stores a piece of the results once, also when it arrives twice', async () => {
    const batch = newBatch();
    await storeBatch(access, batch);
    const lease = await takeAs('h1');
    const copy = { ...lease };
    await appendResults(lease, ['1']);
    await appendResults(copy, ['1']);
    await appendResults(lease, ['2']);
    expect(await storedLines(batch.id)).toEqual(['1', '2']);
  });

  test('drops the beginning of a long line whose driver died in it', async () => {
    const batch = newBatch();
    await storeBatch(access, batch);
    const first = await takeAs('h1');
    let left = 3;
    const seal: typeof sealer.seal = (...args) => {
      if (left-- === 0) throw new Error('the driver dies');
      return sealer.seal(...args);
    };
    const dies = appendResults({ ...first, sealer: { ...sealer, seal } }, ['1', 'x'.repeat(2_500_000)]);
    await expect(dies).rejects.toThrow('the driver dies');
    expect(await storedLines(batch.id)).toEqual(['1']);
    await outlive();
    const second = await takeAs('h2');
    await appendResults(second, ['2', 'y'.repeat(2_500_000)]);
    expect((await storedLines(batch.id)).map((line) => line.length)).toEqual([1, 1, 2_500_000]);
  });

  test('keeps outputs that fit, and returns an error for each other one', async () => {
    const batch = newBatch();
    await storeBatch(access, batch);
    const lease = await takeAs('h1');
    const large = Buffer.alloc(LIMITS.detachedTaskOutputBytes);
    const errors = await storeOutputs(lease, 'a#1', [
      { path: '/large', packed: large },
      { path: '/small', packed: Buffer.from('one') },
    ]);
    expect(errors).toMatchObject({ '/large': { code: 'FILE_TOO_LARGE' } });
    await redis.hset(access.keys.state, 'resultBytes', LIMITS.detachedOutputBytes);
    expect(await storeOutputs(lease, 'a#2', [{ path: '/small', packed: Buffer.from('two') }])).toMatchObject({
      '/small': { code: 'FILE_TOO_LARGE', message: expect.stringContaining('1024 MiB') },
    });
    const readSmall = () => readOutput(access, batch.id, 'a#1', '/small');
    expect(await readSmall()).toEqual(Buffer.from('one'));
    // The next run has no such output, or one that does not fit, and nothing of the earlier one stays.
    await storeOutputs(lease, 'a#1', [{ path: '/small', packed: large }]);
    expect(await readSmall()).toBeUndefined();
    await redis.hset(access.keys.state, 'resultBytes', 0);
    await storeOutputs(lease, 'a#1', [{ path: '/small', packed: Buffer.from('again') }]);
    await storeOutputs(lease, 'a#1', [{ path: '/small', packed: undefined }]);
    expect([await readSmall(), await redis.hget(access.keys.state, 'outputBytes')]).toEqual([undefined, '0']);
    expect(await readOutput(access, batch.id, 'a#2', '/small')).toBeUndefined();
  });

  test('does not read as a shorter one when a part of it is missing', async () => {
    const tasks = Array.from({ length: 3 }, (_, n) => ({ task: { id: `${n}`, script: 'x'.repeat(600_000) } }));
    const batch = newBatch({ tasks });
    await storeBatch(access, batch);
    const lease = await takeAs('h1');
    await appendResults(lease, ['1']);
    await appendResults(lease, ['2']);
    await redis.hdel(access.keys.tasks, '2');
    const missing = { code: 'BATCH_NOT_FOUND', message: expect.stringContaining('no longer all of the batch nightly') };
    await expect(Array.fromAsync(readTasks(access, batch.id))).rejects.toMatchObject(missing);
    await redis.xdel(access.keys.results, '1-0');
    await expect(storedLines(batch.id)).rejects.toMatchObject(missing);
    await redis.del(access.keys.state, access.keys.results);
    await expect(storedLines(batch.id)).rejects.toMatchObject(missing);
  });

  test('expires as a whole after its end, and is then forgotten', async () => {
    const packed = Buffer.from('file');
    const batch = newBatch({ files: new Map([['blob', packed]]) });
    await storeBatch(access, batch);
    const lease = await takeAs('h1');
    await storeManifest(lease, { name: 'nightly' });
    await appendResults(lease, ['1']);
    await endBatch(lease, { stoppedBy: 'failure', totals: { tasks: 1 }, progress: {} });
    await endBatch(lease, { stoppedBy: 'failure', totals: { tasks: 1 }, progress: {} });
    expect(await readBatch(access)).toMatchObject({ state: 'ended', stoppedBy: 'failure', totals: { tasks: 1 } });
    expect(await readManifest(access, batch.id)).toEqual({ name: 'nightly' });
    expect(await redis.exists(access.keys.files)).toBe(0);
    expect((await lives()).every((life) => life > 0)).toBe(true);
    expect([await redis.zcard(access.fleet.batches), await take('h2')]).toEqual([0, undefined]);
    await expect(renewBatch(lease)).rejects.toMatchObject({ code: 'LEASE_LOST' });
    expect(await removeBatch(access, batch.id)).toBe(true);
    expect(await Array.fromAsync(listBatches(access, { namespace, tenant: 't1' }))).toEqual([]);
  });

  test('ends at once when it is cancelled undriven, else its driver is asked', async () => {
    const [waiting, running] = [newBatch(), newBatch()];
    await storeBatch(access, waiting);
    expect(await cancelBatch(access, waiting.id, 'enough')).toBe('ended');
    expect(await cancelBatch(access, waiting.id, 'enough')).toBe('over');
    await removeBatch(access, waiting.id);
    await storeBatch(access, running);
    const lease = await takeAs('h1');
    expect(await cancelBatch(access, running.id, 'enough')).toBe('asked');
    expect(await renewBatch(lease, { done: 1 })).toEqual({ cancel: 'enough' });
    expect(await removeBatch(access, running.id)).toBe(false);
    expect(await readBatch(access)).toMatchObject({ cancel: 'enough', progress: { done: 1 } });
  });

  test('opens under no other name, and not as another submission', async () => {
    const batch = newBatch();
    await storeBatch(access, batch);
    const other = batchKeys(namespace, 't1', 'other');
    await redis.copy(access.keys.state, other.state);
    await redis.copy(access.keys.tasks, other.tasks);
    await expect(Array.fromAsync(readTasks({ ...access, keys: other }, batch.id))).rejects.toThrow('does not open');
    await expect(Array.fromAsync(readTasks(access, ulid()))).rejects.toThrow('does not open');
  });
});
