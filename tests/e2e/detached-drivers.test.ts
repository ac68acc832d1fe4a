import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Result, Task, TaskResult } from '@shellfleet/client';
import { packPath, unpackTo } from '@shellfleet/client/driving';
import {
  type BatchAccess,
  blobNameOf,
  readBatch,
  readOutput,
  readResultLines,
  type StoredTask,
  storeBatch,
} from '@shellfleet/mailbox';
import { batchKeys, fleetKeys } from '@shellfleet/protocol';
import { createSealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import { ulid } from 'ulid';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectTestRedis } from '../support/mailbox-session.ts';
import { startFleet, type TestFleet, type TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Detached batches in containers, on two workers that die and freeze.

let stack: TestFleet;
let connection: Awaited<ReturnType<typeof connectTestRedis>>;
let directory: string;
beforeAll(async () => {
  [stack, connection] = await Promise.all([startFleet({ workers: 2, slots: 6 }), connectTestRedis()]);
  directory = await mkdtemp(join(tmpdir(), 'sf-detached-'));
  await writeFile(join(directory, 'input'), 'given');
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await connection?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

interface Submitted {
  access: BatchAccess;
  id: string;
}

async function submit(name: string, tasks: readonly Task[]): Promise<Submitted> {
  const redis: Redis = connection.redis;
  const keyspace = stack.keyspace;
  const access = {
    ...{ redis, sealer: createSealer([stack.sealKey]), fleet: fleetKeys(keyspace) },
    keys: batchKeys(keyspace, 'default', name),
  };
  const files = new Map<string, Buffer>();
  const stored: StoredTask[] = [];
  for (const task of tasks) {
    const blobs: Record<string, string[]> = {};
    for (const [path, local] of Object.entries(task.files ?? {})) {
      const packed = await packPath(local, 1_000_000);
      const blob = blobNameOf(access.sealer, packed);
      files.set(blob, packed);
      blobs[path] = [blob];
    }
    stored.push({ task, blobs });
  }
  const id = ulid();
  await storeBatch(access, { id, by: 'ada@desk', options: { concurrency: 6 }, tasks: stored, files });
  return { access, id };
}

async function resultsOf({ access, id }: Submitted): Promise<TaskResult[]> {
  const pages = await Array.fromAsync(readResultLines(access, id));
  const results = pages.flatMap(({ lines }) => lines.map((line): TaskResult => JSON.parse(line)));
  return results.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Returns what is the same in every run of a task: not times, names of sessions and attempts. */
function lasting({ id, task, repeat, outcome, passed, score, endedIn, setup, results, grade, outputs }: TaskResult) {
  const of = ({ outcome, exitCode, stdout }: Result) => `${outcome} ${exitCode} ${stdout}`;
  return {
    ...{ id, task, repeat, outcome, passed, score, endedIn, outputs },
    ...{ setup: setup?.map(of), results: results.map(of), grade: grade && of(grade) },
  };
}

/** Resolves with the worker that drives the batch, once the batch has so many lines. */
async function driverWithLines({ access }: Submitted, lines: number): Promise<TestWorker> {
  const batch = await until(
    () => readBatch(access),
    (read) => (read?.lines ?? 0) >= lines && read?.host !== undefined,
  );
  const worker = stack.workers.find(({ hostId }) => hostId === batch?.host);
  if (worker === undefined) throw new Error('no worker drives the batch');
  return worker;
}

const untilEnded = ({ access }: Submitted) =>
  until(
    () => readBatch(access),
    (batch) => batch?.state === 'ended',
    60_000,
  );

describe('a detached batch', () => {
  const ids = Array.from({ length: 18 }, (_, index) => `t${index}`);
  const tasks = ids.map((id, index): Task => {
    const script = ['mkdir out; cat in n > out/first', `[ $(cat n) != 5 ] && sleep 0.2 && echo ${id} | tee out/second`];
    return {
      ...{ id, setup: [`echo ${index} > n`], script },
      outputs: { '/workspace/out': 'outputs/{id}', '/workspace/none': 'none/{id}' },
      grade: `cat out/first out/second && [ $(cat n) != 7 ] && echo ${index}`,
    };
  });
  const withInput = () => tasks.map((task) => ({ ...task, files: { '/workspace/in': join(directory, 'input') } }));

  test('has the results of an undisturbed one when its worker is killed five times', async () => {
    const calm = await submit('calm', withInput());
    await untilEnded(calm);
    const killed = await submit('killed', withInput());
    for (let kill = 1; kill <= 5; kill++) {
      const worker = await driverWithLines(killed, 2 * kill);
      await worker.kill();
      await worker.start();
    }
    expect(await untilEnded(killed)).toMatchObject({
      lines: ids.length,
      totals: (await readBatch(calm.access))?.totals,
    });
    const results = (await resultsOf(killed)).map(lasting);
    expect(results).toEqual((await resultsOf(calm)).map(lasting));
    expect(results.filter(({ passed }) => !passed).map(({ id }) => id)).toEqual(['t5', 't7']);
    expect(results[0]?.outputs).toEqual({
      '/workspace/out': { path: 'outputs/t0' },
      '/workspace/none': { error: expect.objectContaining({ code: 'FILE_NOT_FOUND' }) },
    });
    for (const [index, id] of ids.entries()) {
      const packed = await readOutput(killed.access, killed.id, id, '/workspace/out');
      await unpackTo(packed ?? Buffer.of(), join(directory, id), 'replace', 1_000_000);
      expect(await readFile(join(directory, id, 'first'), 'utf8')).toBe(`given${index}\n`);
    }
    await until(
      () => connection.redis.keys(`${stack.keyspace}:{default:batch-*`),
      (left) => left.length === 0,
      40_000,
    );
  }, 120_000);

  test('gets nothing from a worker that was frozen past its lease', async () => {
    const batch = await submit('frozen', withInput().slice(0, 12));
    const frozen = await driverWithLines(batch, 2);
    frozen.signal('SIGSTOP');
    await until(
      () => readBatch(batch.access),
      (read) => read?.host !== frozen.hostId,
      20_000,
    );
    frozen.signal('SIGCONT');
    await until(
      () => frozen.log,
      (log) => log.includes('batch.left'),
    );
    expect(await untilEnded(batch)).toMatchObject({ lines: 12, totals: { tasks: 12, passed: 10, failed: 2 } });
    expect((await resultsOf(batch)).map(({ id }) => id)).toEqual(ids.slice(0, 12).sort());
  }, 120_000);
});
