import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { isShellfleetError } from '@shellfleet/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: while Redis is away, commands go on until their ring buffer is full, then wait. Ends and output are
// delivered afterwards. Submit fails within 2 s with a clear error. After a restart with appendfsync always every
// acknowledged write is kept, and nothing runs twice.

const SUBMIT_FAILS_WITHIN_MS = 2_500;
// Durations of the outage itself. No condition tells the test when they are over.
/** Longer than the deadline of a call to Redis. */
const AWAY_MS = 3_000;
const LEASE_OVER_MS = 6_500;

const WAYS = {
  'does not answer (SIGSTOP)': {
    away: async (redis: OwnRedis) => redis.freeze(),
    back: async (redis: OwnRedis) => redis.thaw(),
  },
  'is killed and started again': {
    away: (redis: OwnRedis) => redis.kill(),
    back: (redis: OwnRedis) => redis.start(),
  },
} as const;

/** Gives each test of a suite a Redis and a fleet. */
function useFleet(): { redis: OwnRedis; stack: TestFleet; inspect: FleetInspector } {
  const used = {} as ReturnType<typeof useFleet>;
  beforeEach(async () => {
    used.redis = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always');
    Object.assign(used, await startInspectedFleet({ redisUrl: used.redis.url }));
  });
  afterEach(() => endInspectedFleet(used.stack, used.inspect).finally(() => used.redis[Symbol.asyncDispose]()));
  return used;
}

// The tests mostly wait, so both suites run at the same time. Each runs its tests in order.
describe.concurrent.each(Object.entries(WAYS))('while Redis %s', (_, { away, back }) => {
  const used = useFleet();

  test('a command goes on, then reports end and output once, and queued ones follow', {
    concurrent: false,
  }, async () => {
    const { redis, stack, inspect } = used;
    const session = await stack.fleet.session('goes-on');
    await session.run('before=1');
    const script = 'echo begun; echo ran >> /tmp/runs; sleep 1; seq 1 20000; echo over >&2; touch /tmp/over; (exit 5)';
    const command = await session.submit(script, { timeoutMs: 60_000 });
    const queued = session.run('cat /tmp/runs; echo $before');
    await inspect.untilOutput('goes-on');
    const container = await inspect.container('goes-on');
    await away(redis);
    await inspect.untilFile(container, '/tmp/over');
    await back(redis);
    const numbers = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join('');
    let output = '';
    for await (const chunk of command.output()) if (chunk.stream === 'stdout') output += chunk.text;
    expect(output).toBe(`begun\n${numbers}`);
    expect(await command.result()).toMatchObject({
      outcome: 'failure',
      exitCode: 5,
      stderr: 'over\n',
      shell: { state: 'kept' },
    });
    expect(await queued).toMatchObject({ stdout: 'ran\n1\n', shell: { state: 'kept', epoch: 1 } });
    expect(await inspect.broken('goes-on', [command.id])).toEqual([]);
  });

  test('a command with much output waits, off its time limit, and is whole afterwards', {
    concurrent: false,
  }, async () => {
    const { redis, stack, inspect } = used;
    const session = await stack.fleet.session('waits', { output: { streamBytes: 64 << 20 } });
    await session.run('true');
    const bytes = 20_000_000;
    const command = await session.submit(`seq 1 10000000 | head -c ${bytes}`, { timeoutMs: 8_000 });
    await inspect.untilOutput('waits');
    await away(redis);
    await delay(3 * AWAY_MS);
    await back(redis);
    const hash = createHash('md5');
    let got = 0;
    for await (const { data } of command.output()) {
      hash.update(data);
      got += data.byteLength;
    }
    expect(got).toBe(bytes);
    const result = await command.result();
    expect(result).toMatchObject({ outcome: 'success', totals: { stdoutBytes: bytes } });
    const again = await session.run(`seq 1 10000000 | head -c ${bytes} | md5sum | cut -c1-32`, { timeoutMs: 20_000 });
    expect(again.stdout).toBe(`${hash.digest('hex')}\n`);
    expect(await inspect.broken('waits', [command.id])).toEqual([]);
  });

  test('a living host keeps its sessions for longer than a lease', { concurrent: false }, async () => {
    const { redis, stack, inspect } = used;
    const session = await stack.fleet.session('outlasts', { hostGraceMs: 0 });
    await session.run('before=1');
    const command = await session.submit('echo begun; sleep 2; echo over', { timeoutMs: 60_000 });
    await inspect.untilOutput('outlasts');
    await away(redis);
    await delay(LEASE_OVER_MS);
    await back(redis);
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'begun\nover\n' });
    expect(await session.run('echo $before')).toMatchObject({ stdout: '1\n', shell: { state: 'kept', epoch: 1 } });
    expect(await inspect.broken('outlasts', [command.id])).toEqual([]);
  });

  test('a worker that is killed and restarted adopts its sessions later', { concurrent: false }, async () => {
    const { redis, stack, inspect } = used;
    const worker = stack.workers[0] as TestWorker;
    const session = await stack.fleet.session('both');
    await session.run('before=1');
    const command = await session.submit('echo begun; sleep 2; echo over; touch /tmp/over', { timeoutMs: 60_000 });
    await inspect.untilOutput('both');
    const container = await inspect.container('both');
    await away(redis);
    await worker.kill();
    await inspect.untilFile(container, '/tmp/over');
    await back(redis);
    await worker.start();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'begun\nover\n' });
    expect((await session.run('echo $before')).stdout).toBe('1\n');
    expect(await inspect.broken('both', [command.id])).toEqual([]);
  });
});

// This test measures a time, so nothing else of this file runs meanwhile.
describe.each(Object.entries(WAYS))('while Redis %s', (_, { away, back }) => {
  const used = useFleet();

  test('submit fails within its deadline with a clear error, and works again later', async () => {
    const { redis, stack, inspect } = used;
    const session = await stack.fleet.session('refused');
    await session.run('before=1');
    await away(redis);
    const from = performance.now();
    const failure = await session.submit('echo lost', { idempotencyKey: 'key' }).then(
      () => undefined,
      (error: unknown) => error,
    );
    const took = performance.now() - from;
    console.info(`submit failed after ${Math.round(took)} ms`);
    expect(isShellfleetError(failure) && failure.toJSON()).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      retryable: true,
    });
    expect(took).toBeLessThan(SUBMIT_FAILS_WITHIN_MS);
    await back(redis);
    const retried = await until(
      () => session.run('echo "ran $before"', { idempotencyKey: 'other' }).catch((error: unknown) => error),
      (answer) => !isShellfleetError(answer),
    );
    expect(retried).toMatchObject({ stdout: 'ran 1\n', shell: { state: 'kept', epoch: 1 } });
    expect(await inspect.broken('refused')).toEqual([]);
  });
});
