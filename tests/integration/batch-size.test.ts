import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { newFleet } from '../support/fake-shell-workers.ts';
import { declareTestFleet } from '../support/keyspace.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { follow } from '../support/run-cli.ts';
import { SimulatedSessions } from '../support/simulated-sessions.ts';
import { until } from '../support/until.ts';

// Memory of a batch. The shells are simulated; the driver is a real process, and Redis is real.
//
// For more tasks: SHELLFLEET_TEST_TASKS=1000000 vitest run --project integration tests/integration/batch-size.test.ts
const TASKS = Number(process.env.SHELLFLEET_TEST_TASKS ?? 10_000);
const MOST_MS = 30_000 + 10 * TASKS;
const MIB = 2 ** 20;
const driver = fileURLToPath(new URL('../fixtures/drives-batch.ts', import.meta.url));

describe(`a batch of ${TASKS} tasks`, () => {
  test(
    'takes no more memory in its driver and in Redis as it goes on',
    async () => {
      const directory = await mkdtemp(join(tmpdir(), 'sf-batch-size-'));
      await using own = await startOwnRedis();
      const { namespace, keyspace, sealKey } = newFleet();
      await declareTestFleet(own.url, namespace);
      const host = new SimulatedSessions(own.redis, keyspace);
      const redisBytes = async () => Number(/used_memory:(\d+)/.exec(await own.redis.info('memory'))?.[1]);
      const flags = ['--expose-gc', '--conditions=@shellfleet/source', '--no-warnings', driver];
      const args = [...flags, own.url, namespace, sealKey, join(directory, 'out'), String(TASKS)];
      const from = performance.now();
      const { output, end } = follow(spawn(process.execPath, args));
      const printed = () => output().stdout.toString().trim().split('\n').filter(Boolean).map(Number);
      const untilPrinted = (count: number) => until(printed, (numbers) => numbers.length >= count, MOST_MS);
      await untilPrinted(1);
      const early = await redisBytes();
      await untilPrinted(2);
      const late = await redisBytes();
      const { exitCode, stderr } = await end;
      host.stop();
      const [heapEarly = 0, heapLate = 0, passed] = printed();
      const perSecond = Math.round((1_000 * TASKS) / (performance.now() - from));
      const inMib = [heapEarly, heapLate, early, late].map((bytes) => Math.round(bytes / MIB));
      console.info(
        `${perSecond} tasks per second; MiB early and late: driver ${inMib.slice(0, 2)}, Redis ${inMib.slice(2)}`,
      );
      expect({ exitCode, stderr, passed }).toEqual({ exitCode: 0, stderr: '', passed: TASKS });
      expect(heapLate - heapEarly).toBeLessThan(8 * MIB);
      // Sessions of the last seconds have not expired yet. How many they are depends on the speed of the machine.
      expect(late - early).toBeLessThan(64 * MIB);
      await until(
        () => own.redis.keys(`${keyspace}:{default:batch-*`),
        (keys) => keys.length === 0,
      );
      expect(await redisBytes()).toBeLessThan(early);
      await rm(directory, { recursive: true });
    },
    MOST_MS,
  );
});
