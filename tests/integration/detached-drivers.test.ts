import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BatchOptions, type Result, readBatchResults, type Task, type TaskResult } from '@shellfleet/client';
import { BatchDrive, HeldLease } from '@shellfleet/client/driving';
import { type BatchAccess, cancelBatch, readBatch, readResultLines, storeBatch, takeBatch } from '@shellfleet/mailbox';
import { batchKeys, fleetKeys, LIMITS } from '@shellfleet/protocol';
import { createSealer } from '@shellfleet/sealing';
import { ulid } from 'ulid';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, type StageHost, setClientStage } from '../support/client-stage.ts';
import { until } from '../support/until.ts';

// Workers that drive detached batches, on hosts whose commands run on this machine, so that each run of a task can
// append a line to a file.

let stage: ClientStage;
let directory: string;
const drivers: StageHost[] = [];
/** Starts a host that drives batches, and takes none of their sessions. */
const startDriver = (id: string) => stage.startHost({ id, env: { SHELLFLEET_POLICIES: 'host' } });
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost({ id: 'runs', slots: 40, env: { SHELLFLEET_BATCHES: '0' } });
  for (const id of ['drives-1', 'drives-2']) drivers.push(await startDriver(id));
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-detached-'));
});
afterAll(async () => {
  await stage?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const linesOf = async (path: string) => (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean);
const accessTo = (name: string, tenant = 'default'): BatchAccess => ({
  redis: stage.redis,
  sealer: createSealer([stage.sealKey]),
  fleet: fleetKeys(stage.keyspace),
  keys: batchKeys(stage.keyspace, tenant, name),
});

interface Stored {
  tenant?: string;
  fleet?: BatchAccess['fleet'];
  /** Text that is stored with each task, so that few of them fill a piece of the tasks. */
  fill?: string;
}

/** Submits a batch, and returns its access and its id. */
async function submit(name: string, tasks: Task[], options: object = {}, { tenant, fleet, ...more }: Stored = {}) {
  const known = accessTo(name, tenant);
  const access = fleet === undefined ? known : { ...known, fleet };
  const id = ulid();
  const stored = { id, by: 'ada@desk', options, tasks: tasks.map((task) => ({ task, ...more })), files: new Map() };
  expect(await storeBatch(access, stored)).toBe('stored');
  return { access, id };
}

async function resultsOf({ access, id }: { access: BatchAccess; id: string }): Promise<TaskResult[]> {
  const pages = await Array.fromAsync(readResultLines(access, id));
  return pages.flatMap(({ lines }) => lines.map((line): TaskResult => JSON.parse(line)));
}

const fill = 'x'.repeat(200_000);

/** Submits a batch of which the hosts do not know, and takes its lease. The lease has a connection of its own. */
async function takeAway(name: string, tasks: Task[], options: object) {
  const redis = stage.redis.duplicate().on('error', () => {});
  const unknown = { fleet: fleetKeys(`${stage.keyspace}-unknown`), fill };
  const { access, id } = await submit(name, tasks, options, unknown);
  const held = new HeldLease();
  const taken = await takeBatch({ ...access, redis }, { tenant: 'default', name, score: '' }, 'in-this-process');
  if (taken === undefined) throw new Error('it was not taken');
  return { access, id, ...taken, held, close: () => redis.disconnect() };
}

const untilEnded = ({ access }: { access: BatchAccess }) =>
  until(
    () => readBatch(access),
    (batch) => batch?.state === 'ended',
  );

/** Returns what two batches of the same tasks have in common: not times, names of sessions and ids of commands. */
function lasting(results: readonly TaskResult[]) {
  const of = ({ outcome, exitCode, stdout }: Result) => `${outcome} ${exitCode} ${stdout}`;
  const shared = results.map(({ id, outcome, passed, score, endedIn, endedBy, attempts, error, ...rest }) => ({
    ...{ id, outcome, passed, score, endedIn, endedBy, attempts, error: error?.code },
    ...{ setup: rest.setup?.map(of), results: rest.results.map(of), grade: rest.grade && of(rest.grade) },
  }));
  return shared.sort((a, b) => (a.id < b.id ? -1 : 1));
}

// The two places for the results of a batch, files and Redis, keep one contract.
describe('the results of a detached batch', () => {
  const tasks: Task[] = [
    { id: 'passes', script: ['echo 1', 'echo 2'], grade: 'echo 0.25' },
    { id: 'fails', script: ['exit 3', 'echo never'], setup: ['true'] },
    { id: 'unprepared', setup: ['exit 1'], script: 'echo never', grade: 'true' },
    { id: 'graded', script: 'exit 1', grade: `echo '{"pass": true, "score": 7}'` },
    { id: 'late', script: 'exec sleep 600', deadlineMs: 700 },
    { id: 'invalid', script: 'true', spec: { limits: { memoryBytes: -1 } } } as never,
    { id: 'x/y \u2028 z', script: 'printf "\\342\\200\\250"' },
  ];

  test.each<[string, Task[], BatchOptions]>([
    ['tasks of every kind', tasks, {}],
    ['repeats and retries', tasks.slice(0, 2), { repeats: 2, retries: { command: 1 }, timeoutMs: 5_000 }],
    ['a stop at the first failure', [...tasks.slice(0, 2), ...tasks.slice(3)], { stopOnFailure: true, concurrency: 1 }],
    [
      'a deadline',
      [{ id: 'a', script: 'exec sleep 600' }, ...tasks.slice(0, 1)],
      { deadlineMs: 1_000, concurrency: 1 },
    ],
  ])('are those of the same batch in a file: %s', async (what, some, options) => {
    const name = what.replaceAll(' ', '-');
    const out = join(directory, `${name}.jsonl`);
    const fleet = await stage.connect();
    const batch = fleet.batch(some, { ...options, name, out });
    const [totals, detached] = await Promise.all([batch.run(), submit(name, some, options)]);
    const ended = await untilEnded(detached);
    expect(lasting(await resultsOf(detached))).toEqual(lasting(await Array.fromAsync(readBatchResults(out))));
    expect(ended).toMatchObject({ totals, lines: (await linesOf(out)).length, stoppedBy: batch.stoppedBy });
  });
});

describe('a detached batch', () => {
  test('is driven by a worker to its end, as the tenant that submitted it', async () => {
    const tasks = [
      { id: 'a', script: 'echo 1' },
      { id: 'b', script: 'exit 3' },
      { id: 'c', script: 'echo 3', grade: 'echo 0.5' },
    ];
    const batch = await submit('simple', tasks, { repeats: 2, concurrency: 3 }, { tenant: 'ours' });
    expect(await untilEnded(batch)).toMatchObject({
      ...{ by: 'ada@desk', lines: 6, stoppedBy: undefined, failure: undefined },
      totals: { tasks: 6, skipped: 0, passed: 4, failed: 2, success: 4, failure: 2 },
      progress: { done: 6, passed: 4, running: 0 },
    });
    const results = await resultsOf(batch);
    expect(results.map(({ id, outcome, score }) => `${id} ${outcome} ${score}`).sort()).toEqual([
      ...['a#1 success undefined', 'a#2 success undefined', 'b#1 failure undefined', 'b#2 failure undefined'],
      ...['c#1 success 0.5', 'c#2 success 0.5'],
    ]);
    // The sessions belong to the tenant, and the fleet forgets them.
    expect(results[0]?.sessionId).toContain('batch-simple.');
    const ours = await stage.connect({ tenant: 'ours' });
    await expect.poll(() => Array.fromAsync(ours.sessions({ all: true }))).toEqual([]);
  });

  test('goes on at another host, and runs each task once, when its worker stops', async () => {
    const ran = join(directory, 'handed-over');
    const ids = Array.from({ length: 12 }, (_, n) => `t${n}`);
    const tasks = ids.map((id) => ({ id, script: [`sleep 0.1; echo ${id} >> ${ran}`, `echo ${id}`] }));
    const batch = await submit('handed', tasks, { concurrency: 3 });
    await until(
      () => linesOf(ran),
      (lines) => lines.length >= 3,
    );
    const { host } = (await readBatch(batch.access)) ?? {};
    await drivers.find(({ id }) => id === host)?.leave();
    const ended = await untilEnded(batch);
    expect(ended?.host).not.toBe(host);
    expect(ended).toMatchObject({ lines: 12, totals: { tasks: 12, passed: 12 } });
    expect((await linesOf(ran)).sort()).toEqual([...ids].sort());
    const results = await resultsOf(batch);
    expect(results.map(({ id, attempts }) => `${id} ${attempts}`).sort()).toEqual(ids.map((id) => `${id} 1`).sort());
  });

  test('ends its running tasks as cancellations when it is cancelled', async () => {
    const tasks = ['a', 'b', 'c'].map((id) => ({ id, script: 'exec sleep 600' }));
    const batch = await submit('cancelled', tasks, { concurrency: 2 });
    const fleet = await stage.connect();
    await until(
      () => Array.fromAsync(fleet.sessions({ state: 'busy' })),
      (busy) => busy.length === 2,
    );
    expect(await cancelBatch(batch.access, batch.id, 'enough')).toBe('asked');
    expect(await untilEnded(batch)).toMatchObject({ lines: 2, stoppedBy: 'signal', totals: { cancelled: 2 } });
    const results = await resultsOf(batch);
    expect(results.map(({ id, outcome, endedBy }) => `${id} ${outcome} ${endedBy}`).sort()).toEqual([
      'a cancellation signal',
      'b cancellation signal',
    ]);
    await expect.poll(() => Array.fromAsync(fleet.sessions())).toEqual([]);
  });

  test('is driven to its end although each call of its driver fails first', async () => {
    const ran = join(directory, 'with-errors');
    const tasks = ['a', 'b', 'c'].map((id) => ({ id, script: [`echo ${id} >> ${ran}`, `echo ${id}`] }));
    const { access, lease, held, batch, close } = await takeAway('unsteady', tasks, {
      deadlineMs: 60_000,
      concurrency: 2,
    });
    const { sendCommand } = lease.redis;
    const failed = new Set<string>();
    lease.redis.sendCommand = (command, ...rest) => {
      const call = [command.name, ...command.args.slice(0, 2)].join(' ');
      if (failed.has(call)) return sendCommand.call(lease.redis, command, ...rest);
      failed.add(call);
      command.reject(new Error('Connection is closed.'));
      return command.promise;
    };
    const options = { deadlineMs: 60_000, concurrency: 2 };
    const drive = new BatchDrive({ redisUrl: stage.own.url, lease, held, batch, options, directory });
    expect(await drive.run()).toEqual({ type: 'ended', stoppedBy: undefined, failure: undefined });
    close();
    expect(await readBatch(access)).toMatchObject({ state: 'ended', lines: 3, totals: { passed: 3 } });
    expect((await linesOf(ran)).sort()).toEqual(['a', 'b', 'c']);
    expect(failed.size).toBeGreaterThan(10);
  });

  test('runs each task once when connections break while it is driven', async () => {
    const ran = join(directory, 'broken');
    const ids = Array.from({ length: 12 }, (_, n) => `t${n}`);
    const tasks = ids.map((id) => ({ id, script: [`sleep 0.3; echo ${id} >> ${ran}`, `echo ${id}`] }));
    const batch = await submit('broken', tasks, { concurrency: 4 }, { fill });
    for (const atLeast of [2, 6]) {
      await until(
        () => linesOf(ran),
        (lines) => lines.length >= atLeast,
      );
      await stage.redis.client('KILL', 'TYPE', 'NORMAL');
    }
    expect(await untilEnded(batch)).toMatchObject({ lines: 12, totals: { tasks: 12, passed: 12 }, failure: undefined });
    expect((await linesOf(ran)).sort()).toEqual([...ids].sort());
    const results = await resultsOf(batch);
    expect(results.filter(({ attempts }) => attempts > 1)).toEqual([]);
  });

  test('starts no task when it was cancelled before its next driver', async () => {
    const ran = join(directory, 'cancelled-between');
    const { id, lease, held, batch, close } = await takeAway('between', [{ id: 'a', script: `echo a >> ${ran}` }], {});
    const given = { redisUrl: stage.own.url, lease, held, options: {}, directory };
    const drive = new BatchDrive({ ...given, batch: { ...batch, id, cancel: 'enough' } });
    expect(await drive.run()).toMatchObject({ type: 'ended', stoppedBy: 'signal' });
    close();
    expect(await linesOf(ran)).toEqual([]);
  });

  test('gets nothing from a driver whose lease was over before it began', async () => {
    const { access, lease, batch, close } = await takeAway('slow', [{ id: 'a', script: 'true' }], {});
    let now = 0;
    const held = new HeldLease(() => ({ wall: now, monotonic: now }));
    now = 5_000;
    const drive = new BatchDrive({ redisUrl: stage.own.url, lease, held, batch, options: {}, directory });
    expect(await drive.run()).toMatchObject({ type: 'left', because: { code: 'LEASE_LOST' } });
    close();
    expect(await readBatch(access)).toMatchObject({ state: 'waiting', lines: 0 });
  });

  test('ends when ten drivers in a row came to nothing', async () => {
    const { access, lease, held, batch, close } = await takeAway('deadly', [{ id: 'a', script: 'true' }], {});
    const given = { redisUrl: stage.own.url, held, batch, options: {}, directory };
    const drive = new BatchDrive({ ...given, lease: { ...lease, takes: 11 } });
    expect(await drive.run()).toMatchObject({ type: 'ended', failure: { code: 'INTERNAL' } });
    close();
    expect(await readBatch(access)).toMatchObject({ state: 'ended', lines: 0 });
  });

  test('ends with an error when there is no room for its result lines', async () => {
    const batch = await submit('full', [{ id: 'a', script: 'sleep 0.5' }]);
    await batch.access.redis.hset(batch.access.keys.state, 'resultBytes', LIMITS.detachedOutputBytes);
    expect(await untilEnded(batch)).toMatchObject({ lines: 0, failure: { code: 'BATCH_TOO_LARGE' } });
  });

  test('ends with its error when its options are not valid', async () => {
    const batch = await submit('invalid', [{ id: 'a', script: 'true' }], { repeats: 'many' });
    expect(await untilEnded(batch)).toMatchObject({ lines: 0, failure: { code: 'COMMAND_INVALID' } });
  });
});
