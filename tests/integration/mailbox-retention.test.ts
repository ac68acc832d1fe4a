import { finish, open, release, submit, take } from '@shellfleet/mailbox';
import {
  fleetKeys,
  idempotencyKey,
  LIMITS,
  recordKey,
  replyKey,
  type StoredChunk,
  specKey,
} from '@shellfleet/protocol';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { readRetention, recordRetention, retentionOf } from '@shellfleet/redis';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { connectTestRedis, finishAs, newKeys, newSubmission, own } from '../support/mailbox-session.ts';

const data = Buffer.from('hi\n');
const CHUNK: StoredChunk = {
  ...{ stream: 'stdout', seq: 0, rawFrom: 0, rawTo: 3, omittedBytes: 0, lines: 1, offset: 0, data },
};
const RESULT = sampleResult('success', {
  ...{ stdout: 'hi\n', output: 'hi\n', totals: { stdoutBytes: 3, stderrBytes: 0, stdoutLines: 1, stderrLines: 0 } },
  ...{ shell: { state: 'kept', epoch: 1 }, timings: { queuedMs: 1, startMs: 0, runMs: 1, totalMs: 2 } },
  ...{ receipt: { acceptedAt: 1_795_812_393_569, firstOutputMs: 1 }, usage: { cpuMs: 1, peakMemoryBytes: 3_158_016 } },
  ...{ hostId: 'host-3470184283d7', imageDigest: `sha256:${'4'.repeat(64)}` },
});
/** Bytes of a key in Redis' tables of keys and of expiries. */
const ENTRY_BYTES = 2 * 32;

/** Returns the bytes of all keys that match, with their names and their places in the tables of Redis. */
async function bytesOf(redis: Redis, pattern: string): Promise<number> {
  const keys = await redis.keys(pattern);
  const sizes = await Promise.all(keys.map((key) => redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0)));
  return sizes.reduce((sum: number, size) => sum + Number(size) + ENTRY_BYTES, 0);
}

describe('the retention of a fleet', () => {
  test('is 24 hours until a worker records another time for all processes', async () => {
    await using server = await connectTestRedis();
    const { redis } = server;
    const keys = newKeys();
    expect(await readRetention(redis, keys.namespace)).toBe(LIMITS.defaultRetentionMs);
    const other = new Redis(server.url);
    await recordRetention(other, fleetKeys(keys.namespace), 5_000);
    other.disconnect();
    expect(retentionOf(redis, keys.namespace)).toBe(LIMITS.defaultRetentionMs);
    expect(await readRetention(redis, keys.namespace)).toBe(5_000);
    expect(retentionOf(redis, keys.namespace)).toBe(5_000);
    expect(retentionOf(redis, 'another')).toBe(LIMITS.defaultRetentionMs);
  });

  test('limits the lifetime of all keys of a closed session', async () => {
    await using server = await connectTestRedis();
    const { redis } = server;
    const keys = newKeys();
    await recordRetention(redis, fleetKeys(keys.namespace), 5_000);
    const opened = await open(redis, keys, () => 'sealed spec', 'digest');
    if (opened.type !== 'created') throw new Error(opened.type);
    const submission = newSubmission(opened.generation, { idempotencyKey: 'k' });
    await submit(redis, keys, submission);
    const owner = await own(redis, keys);
    await take(owner);
    await finish(owner, submission.entryId, { ...finishAs('success'), answer: 'sealed answer' });
    await redis.hset(keys.state, 'phase', 'closing');
    await release(owner, 'queued');
    const left = await redis.keys(`${keys.prefix}*`);
    const expected = [
      ...[keys.state, keys.stream, specKey(keys), recordKey(keys, submission.entryId)],
      ...[replyKey(keys, submission.entryId), idempotencyKey(keys, 'k')],
    ];
    expect(left.sort()).toEqual(expected.sort());
    const times = await Promise.all(left.map((key) => redis.pttl(key)));
    expect(times.filter((ms) => ms > 5_000 || ms === -1)).toEqual([]);
  });

  test('keeps at most 1.2 KB of an ended command with a short output', async () => {
    await using server = await connectTestRedis();
    const { redis } = server;
    const keys = newKeys();
    const opened = await open(redis, keys, () => 'sealed spec', 'digest');
    if (opened.type !== 'created') throw new Error(opened.type);
    const owner = await own(redis, keys, 'host-3470184283d7');
    const bytesAfter = async (commands: number) => {
      for (let left = commands; left > 0; left -= 1) {
        const submission = newSubmission(opened.generation, { payload: 'p'.repeat(180) });
        await submit(redis, keys, submission);
        await take(owner);
        await finish(owner, submission.entryId, { ...finishAs('success'), result: RESULT, output: [CHUNK] });
      }
      return bytesOf(redis, `${keys.prefix}*`);
    };
    const before = await bytesAfter(100);
    expect(((await bytesAfter(200)) - before) / 200).toBeLessThan(1_200);
  });
});
