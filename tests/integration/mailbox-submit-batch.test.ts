import {
  appendResults,
  type BatchAccess,
  cancelBatch,
  endBatch,
  listBatches,
  putOffBatch,
  readBatch,
  readDueBatches,
  readResultLines,
  releaseBatch,
  removeBatch,
  renewBatch,
  storeBatch,
  storeManifest,
} from '@shellfleet/mailbox';
import { batchesKey, batchKeys, LIMITS } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { ulid } from 'ulid';
import { beforeEach, describe, expect, test } from 'vitest';
import { newBatch, newBatchAccess, takeAs, takeDue } from '../support/detached-batch.ts';
import { redis, useMailbox } from '../support/open-mailbox.ts';
import { startOwnRedis } from '../support/own-redis.ts';

useMailbox();

// What becomes of a detached batch whose submitter dies, comes again, or loses an answer.

let access: BatchAccess;
beforeEach(() => {
  access = newBatchAccess(redis);
});

type Call = 'commit' | 'store';

/** Tells which script of a submit a call is, by its arguments. */
function callOf([, keys, ...rest]: unknown[]): Call | undefined {
  if (rest[7] === 'tasks' || rest[7] === 'files') return 'store';
  return keys === 5 && rest.length === 7 && typeof rest[6] === 'number' ? 'commit' : undefined;
}

/** Returns access whose script has a step before it and after it. */
function withSteps(name: Call, { before, after }: { before?: () => Promise<void>; after?: () => Promise<void> }) {
  const evalsha = async (...args: Parameters<Redis['evalsha']>) => {
    const isIt = callOf(args) === name;
    if (isIt) await before?.();
    const reply = await redis.evalsha(...args);
    if (isIt) await after?.();
    return reply;
  };
  const watched = new Proxy(redis, {
    get(target, field) {
      const value = field === 'evalsha' ? evalsha : Reflect.get(target, field);
      return typeof value === 'function' && field !== 'evalsha' ? value.bind(target) : value;
    },
  });
  return { ...access, redis: watched };
}

const lost = () => Promise.reject(new Error('Connection is closed.'));
const list = () => Array.fromAsync(listBatches(access, { namespace: access.keys.namespace, tenant: 't1' }));
const timeOfName = () => redis.zscore(batchesKey(access.keys.namespace, 't1'), 'nightly');

/** Leaves behind what a submitter stores that dies before the commit. */
async function dieBeforeCommit(id = ulid()): Promise<string> {
  // The commit never begins, so `storeBatch` never reaches the code that removes what it has stored.
  const dying = withSteps('commit', { before: () => new Promise(() => {}) });
  void storeBatch(dying, newBatch({ id }));
  await expect.poll(() => redis.hlen(access.keys.tasks)).toBe(1);
  await expect.poll(timeOfName).toBe('inf');
  return id;
}

/** Does what time does to a batch that its submitter has left. */
async function expire(): Promise<void> {
  const { state, tasks } = access.keys;
  for (const key of [state, tasks]) expect(await redis.pttl(key)).toBeGreaterThan(50_000);
  await redis.del(state, tasks);
}

describe('a submit of a detached batch', () => {
  test('keeps what it has committed when it loses the answer', async () => {
    const batch = newBatch();
    const drive = async () => {
      const lease = await takeAs(access, 'h1');
      await appendResults(lease, ['1']);
      await endBatch(lease, { totals: {}, progress: {} });
      return lost();
    };
    expect(await storeBatch(withSteps('commit', { after: drive }), batch)).toBe('stored');
    expect(await readBatch(access)).toMatchObject({ id: batch.id, state: 'ended', lines: 1 });
    expect(await Array.fromAsync(readResultLines(access, batch.id))).toMatchObject([{ lines: ['1'] }]);
  });

  test('that comes twice with its id leaves its batch as it is', async () => {
    const batch = newBatch();
    await storeBatch(access, batch);
    expect(await storeBatch(access, batch)).toBe('same');
    await endBatch(await takeAs(access, 'h1'), { totals: {}, progress: {} });
    expect(await storeBatch(access, batch)).toBe('same');
    expect(await list()).toMatchObject([{ id: batch.id, state: 'ended' }]);
  });

  test('removes what it has stored when it fails before the commit', async () => {
    await expect(storeBatch(withSteps('store', { after: lost }), newBatch())).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
    });
    expect(await redis.exists(access.keys.state, access.keys.tasks)).toBe(0);
    expect(await timeOfName()).toBeNull();
  });

  test.each(['tasks', 'files'] as const)('is not committed without all its %s', async (kind) => {
    const before = async () => void (await redis.del(access.keys[kind]));
    const batch = newBatch({ files: new Map([['blob', Buffer.of(1)]]) });
    const stored = storeBatch(withSteps('commit', { before }), batch);
    await expect(stored).rejects.toMatchObject({ code: 'BATCH_NOT_FOUND' });
    expect(await takeDue(access, 'h1')).toBeUndefined();
  });

  test('leaves nothing to drive when it dies before the commit, and no name', async () => {
    await dieBeforeCommit();
    expect(await takeDue(access, 'h1')).toBeUndefined();
    expect(await redis.zscore(access.fleet.batches, 't1 nightly')).not.toBeNull();
    await expire();
    expect(await list()).toEqual([]);
    expect(await timeOfName()).toBeNull();
  });

  test('does not touch the batch that has its name by now', async () => {
    const other = newBatch();
    const before = async () => {
      await expire();
      await storeBatch(access, other);
    };
    await expect(storeBatch(withSteps('commit', { before }), newBatch())).rejects.toThrow('was cancelled or removed');
    expect(await removeBatch(access, ulid())).toBe(true);
    expect(await list()).toMatchObject([{ id: other.id, state: 'waiting' }]);
    expect(await timeOfName()).toBe('inf');
  });

  test('keeps the name a minute before the commit, and for the retention after the end', async () => {
    const leftAt = async () => Number(await timeOfName()) - Date.now();
    let whileStored = 0;
    const before = async () => {
      whileStored = await leftAt();
    };
    await storeBatch(withSteps('store', { before }), newBatch());
    expect(whileStored).toBeGreaterThan(50_000);
    expect(whileStored).toBeLessThan(70_000);
    await redis.zadd(batchesKey(access.keys.namespace, 't1'), 1, 'old');
    await endBatch(await takeAs(access, 'h1'), { totals: {}, progress: {} });
    expect(await leftAt()).toBeGreaterThan(70_000);
    expect(await redis.zcard(batchesKey(access.keys.namespace, 't1'))).toBe(1);
  });

  test('ends when somebody cancels it, and no host gets the batch', async () => {
    const batch = newBatch();
    const before = async () => expect(await cancelBatch(access, batch.id, 'enough')).toBe('ended');
    await expect(storeBatch(withSteps('commit', { before }), batch)).rejects.toMatchObject({ code: 'BATCH_NOT_FOUND' });
    expect(await takeDue(access, 'h1')).toBeUndefined();
    expect(await list()).toMatchObject([{ state: 'ended', cancel: 'enough', stoppedBy: 'signal' }]);
  });
});

describe('the batches of a tenant', () => {
  /** Stores other batches of the tenant in part. */
  async function putOthers(count: number, bytes: number): Promise<void> {
    const { namespace } = access.keys;
    const pipeline = redis.pipeline();
    for (let n = 0; n < count; n++) {
      pipeline.hset(batchKeys(namespace, 't1', `other-${n}`).state, {
        id: ulid(),
        state: 'ended',
        bytes: 1,
        resultBytes: bytes,
      });
      pipeline.zadd(batchesKey(namespace, 't1'), '+inf', `other-${n}`);
    }
    await pipeline.exec();
  }

  test('have a most number, within which one is still the same when submitted again', async () => {
    const batch = newBatch();
    await storeBatch(access, batch);
    await putOthers(LIMITS.detachedBatches, 1);
    expect(await storeBatch(access, batch)).toBe('same');
    const further = { ...access, keys: batchKeys(access.keys.namespace, 't1', 'further') };
    await expect(storeBatch(further, newBatch())).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
    // A name of which nothing is stored does not count.
    await redis.del(batchKeys(access.keys.namespace, 't1', 'other-0').state, access.keys.state);
    expect(await storeBatch(further, newBatch())).toBe('stored');
  });

  test('have a limit of bytes together', async () => {
    await putOthers(4, LIMITS.detachedTenantBytes / 4);
    const refused = storeBatch(access, newBatch());
    await expect(refused).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      message: expect.stringContaining('batch rm'),
    });
    expect(await redis.exists(access.keys.state)).toBe(0);
  });
});

describe('a look at a detached batch', () => {
  test('is put off by its host unless the batch was noted in between', async () => {
    await storeBatch(access, newBatch());
    const [due] = await readDueBatches(redis, access.fleet, 10);
    if (due === undefined) throw new Error('nothing was due');
    await redis.zadd(access.fleet.batches, 1, 't1 nightly');
    await putOffBatch(redis, access.fleet, due, undefined);
    expect(await redis.zscore(access.fleet.batches, 't1 nightly')).toBe('1');
    await putOffBatch(redis, access.fleet, { ...due, score: '1' }, undefined);
    expect(await redis.zscore(access.fleet.batches, 't1 nightly')).toBeNull();
  });
});

describe('a look for detached batches', () => {
  test('finds first what has waited longest, and drops what is no name', async () => {
    const { batchesNoted, batches } = access.fleet;
    await redis.zadd(batches, Date.now() - 60_000, 't1 orphaned');
    await redis.lpush(
      batchesNoted,
      't2 orphaned',
      `t2 ${'x'.repeat(65)}`,
      `${'t'.repeat(129)} x`,
      't2 ../x',
      't1 orphaned',
    );
    const names = (await readDueBatches(redis, access.fleet, 10)).map(({ tenant, name }) => `${tenant} ${name}`);
    expect(names).toEqual(['t1 orphaned', 't2 orphaned']);
    expect(await redis.zcard(batches)).toBe(2);
  });
});

describe('a full Redis', () => {
  test('lets a batch be renewed, cancelled, handed over and ended', async () => {
    await using full = await startOwnRedis();
    access = newBatchAccess(full.redis);
    const batch = newBatch();
    await storeBatch(access, batch);
    const first = await takeAs(access, 'h1');
    await full.redis.config('SET', 'maxmemory', '1');
    await expect(appendResults({ ...first }, ['1'])).rejects.toMatchObject({ context: { full: true } });
    expect(await renewBatch(first, { done: 0 })).toEqual({ cancel: undefined });
    expect(await cancelBatch(access, batch.id, 'enough')).toBe('asked');
    await releaseBatch(first, { counts: false });
    const second = await takeAs(access, 'h2');
    await storeManifest(second, {});
    await appendResults(second, ['1']);
    await endBatch(second, { stoppedBy: 'signal', totals: {}, progress: {} });
    expect(await readBatch(access)).toMatchObject({ state: 'ended', lines: 1 });
    expect(await removeBatch(access, batch.id)).toBe(true);
  });
});
