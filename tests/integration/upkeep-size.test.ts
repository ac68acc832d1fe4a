import { finish, release, submit, take } from '@shellfleet/mailbox';
import { sessionJobLockKey } from '@shellfleet/placement';
import { fleetKeys, hostKeys, recordKey, sessionKeys, tenantKeys } from '@shellfleet/protocol';
import { startUpkeep } from '@shellfleet/worker';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { finishAs, newSubmission, openSession, own } from '../support/mailbox-session.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { putIntoIndex } from '../support/put-into-index.ts';
import { until } from '../support/until.ts';

// For more sessions: SHELLFLEET_TEST_SESSIONS=100000 vitest run --project integration
// tests/integration/upkeep-size.test.ts
const SESSIONS = Number(process.env.SHELLFLEET_TEST_SESSIONS ?? 5_000);
const ALIVE = 10;
const HOUR = 3_600_000;
const NAMESPACE = 'upkeep-size';
const fleet = fleetKeys(NAMESPACE);
const INDEX = tenantKeys(NAMESPACE, 't1').index;
const keysOf = (name: string) => sessionKeys(NAMESPACE, 't1', name);

/** Returns the number of commands in Redis so far, by any client. */
async function callsOf(redis: Redis): Promise<number> {
  const stats = await redis.info('commandstats');
  return [...stats.matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

async function memoryOf(redis: Redis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

/** Runs one command of a session on a simulated host, which is then idle and releases the session. */
async function useOnce(redis: Redis, name: string): Promise<void> {
  const keys = keysOf(name);
  await putIntoIndex(redis, keys);
  const generation = await openSession(redis, keys);
  const submission = newSubmission(generation);
  await submit(redis, keys, submission);
  const owner = await own(redis, keys);
  await take(owner);
  await finish(owner, submission.entryId, finishAs('success'));
  await release(owner, 'lost', { type: 'session.lost', data: { reason: 'it was idle' } });
  // The job of the session ends, and the record expires a retention after its end.
  const lock = sessionJobLockKey(fleet, 'docker', keys);
  await redis.del(lock, recordKey(keys, submission.entryId));
}

async function openAlive(redis: Redis, name: string): Promise<void> {
  const keys = keysOf(name);
  await putIntoIndex(redis, keys);
  await openSession(redis, keys);
  await own(redis, keys);
}

const silent = { warn() {}, info() {}, error() {} };

function start(
  redis: Redis,
  { logger = silent, ...times }: { intervalMs: number; quietMs: number; retentionMs: number; logger?: object },
) {
  const jobs = { has: async () => true, ensure: async () => {} } as never;
  return startUpkeep(
    {
      redis,
      fleet,
      hostId: 'h1',
      jobs,
      logger: logger as never,
      sealKeys: [],
      diskQuotas: () => [],
      keyPatienceMs: 0,
      ...times,
    },
    { settled: true },
  );
}

/** Returns the commands of upkeep in a round, averaged over some rounds. */
async function commandsPerRound(redis: Redis): Promise<number> {
  const rounds = 10;
  const roundsSoFar = async () => Number(/cmdstat_time:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
  await redis.config('RESETSTAT');
  await until(roundsSoFar, (count) => count >= rounds);
  return (await callsOf(redis)) / (await roundsSoFar());
}

describe(`upkeep with ${SESSIONS} ended sessions`, () => {
  // UPKEEP-4, UPKEEP-5
  test(`costs time and memory only for the ${ALIVE} sessions in use`, async () => {
    await using own = await startOwnRedis();
    const { redis } = own;
    await redis.set(hostKeys(NAMESPACE, 'h1').alive, '{}');
    for (let index = 0; index < ALIVE; index += 1) await openAlive(redis, `alive-${index}`);
    const before = await memoryOf(redis);
    for (let from = 0; from < SESSIONS; from += 200) {
      await Promise.all(Array.from({ length: 200 }, (_, index) => useOnce(redis, `left-${from + index}`)));
    }
    const left = await memoryOf(redis);

    const upkeep = start(redis, { intervalMs: 100, quietMs: 0, retentionMs: HOUR });
    await until(
      () => redis.zcount(INDEX, '-inf', Date.now()),
      (due) => due === ALIVE,
      600_000,
    );
    const perRound = await commandsPerRound(redis);
    await upkeep.close();
    expect(await redis.zcard(INDEX)).toBe(SESSIONS + ALIVE);

    // The retention of these sessions has passed.
    const due = await redis.zrangebyscore(INDEX, Date.now() + HOUR / 8, '+inf');
    for (const member of due) await redis.zadd(INDEX, 1, member);
    const ending = start(redis, { intervalMs: 100, quietMs: 0, retentionMs: 50 });
    await until(
      () => redis.zcard(INDEX),
      (count) => count === ALIVE,
      600_000,
    );
    await ending.close();
    await until(
      () => redis.keys(`${NAMESPACE}:{t1:left-*`),
      (keys) => keys.length === 0,
    );
    const after = await memoryOf(redis);
    const figures = {
      sessions: SESSIONS,
      perRound,
      bytesPerSession: (left - before) / SESSIONS,
      after: after - before,
    };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    // There are three reads for each session in use, a few for the round, and some more for the sweeps in between.
    expect(perRound).toBeLessThan(8 * ALIVE);
    expect(await redis.hlen(fleet.owners)).toBe(ALIVE);
    expect(after - before).toBeLessThan(Math.max(2 ** 20, (left - before) / 4));
  }, 1_200_000);

  test('reports a session or tenant with invalid keys, and serves all others', async () => {
    await using own = await startOwnRedis();
    const { redis } = own;
    const [state, stream, gone] = [keysOf('wrong-state'), keysOf('wrong-stream'), keysOf('gone')];
    await redis.set(state.state, 'text');
    await openSession(redis, stream);
    await redis.del(stream.stream);
    await redis.set(stream.stream, 'text');
    for (const [score, keys] of [state, stream, gone].entries()) await putIntoIndex(redis, keys, score);
    await redis.set(tenantKeys(NAMESPACE, 't2').index, 'text');
    await redis.lpush(fleet.noted, 't2');
    const reported = new Set<string>();
    const logger = {
      ...silent,
      warn: (line: Record<string, string>) =>
        reported.add(line['shellfleet.session.id'] ?? line['shellfleet.tenant.id'] ?? ''),
    };
    const upkeep = start(redis, { intervalMs: 20, quietMs: HOUR, retentionMs: HOUR, logger });
    await until(
      () => redis.zrange(INDEX, '0', '-1'),
      (members) => !members.includes(gone.session),
    );
    await upkeep.close();
    expect([...reported].sort()).toEqual(['t2', 'wrong-state', 'wrong-stream']);
  });
});
