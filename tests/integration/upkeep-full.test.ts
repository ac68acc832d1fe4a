import { append, finish, submit, take } from '@shellfleet/mailbox';
import { fleetKeys } from '@shellfleet/protocol';
import { startUpkeep } from '@shellfleet/worker';
import { describe, expect, test } from 'vitest';
import { finishAs, newKeys, newSubmission, openSession, own, pieceAfter } from '../support/mailbox-session.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { putIntoIndex } from '../support/put-into-index.ts';
import { until } from '../support/until.ts';

const PIECES = 60;
const PIECE = 'x'.repeat(60_000);

describe('upkeep of a full Redis', () => {
  // UPKEEP-3
  test('frees the memory that output of finished commands takes', async () => {
    await using server = await startOwnRedis();
    const { redis } = server;
    const keys = newKeys();
    const fleet = fleetKeys(keys.namespace);
    await putIntoIndex(redis, keys);
    const generation = await openSession(redis, keys);
    const submission = newSubmission(generation);
    await submit(redis, keys, submission);
    const owner = await own(redis, keys);
    await take(owner);
    let position = { offsets: { stdout: 0, stderr: 0 }, seq: 0 };
    for (let index = 0; index < PIECES; index += 1) {
      const piece = pieceAfter(position, PIECE);
      await append(owner, submission.entryId, [piece]);
      position = { offsets: { stdout: piece.rawTo, stderr: 0 }, seq: piece.seq + 1 };
    }
    await finish(owner, submission.entryId, finishAs('success'));
    const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
    await redis.config('SET', 'maxmemory', used - PIECE.length);
    await expect(submit(redis, keys, newSubmission(generation))).rejects.toThrow('Redis is full');

    const jobs = { has: async () => true, ensure: async () => {} } as never;
    const logger = { warn() {}, info() {}, error() {} } as never;
    const times = { intervalMs: 50, quietMs: 3_600_000, retentionMs: 3_600_000 };
    const upkeep = startUpkeep(
      { redis, fleet, hostId: 'h1', jobs, logger, sealKeys: [], diskQuotas: () => [], keyPatienceMs: 0, ...times },
      { settled: true },
    );
    const accepted = await until(
      () => submit(redis, keys, newSubmission(generation)).catch(() => undefined),
      (answer) => answer !== undefined,
    );
    await upkeep.close();
    expect(accepted?.type).toBe('accepted');
  });
});
