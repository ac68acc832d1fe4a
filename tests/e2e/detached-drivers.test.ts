import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Result, Task, TaskResult } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet, type TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Detached batches in containers, on two workers that die and freeze.

let stack: TestFleet;
let cli: FleetCli;
let directory: string;
beforeAll(async () => {
  stack = await startFleet({ workers: 2, slots: 6 });
  cli = new FleetCli(stack);
  directory = await mkdtemp(join(tmpdir(), 'sf-detached-'));
  await writeFile(join(directory, 'input'), 'given');
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const ids = Array.from({ length: 18 }, (_, index) => `t${index}`);
const toTask = (id: string, index: number): Task => ({
  ...{ id, files: { '/workspace/in': join(directory, 'input') }, setup: [`echo ${index} > n`] },
  script: ['mkdir out; cat in n > out/first', `[ $(cat n) != 5 ] && sleep 0.2 && echo ${id} | tee out/second`],
  outputs: { '/workspace/out': 'outputs/{id}', '/workspace/none': 'none/{id}' },
  grade: `cat out/first out/second && [ $(cat n) != 7 ] && echo ${index}`,
});
const submit = (name: string, count: number) =>
  stack.fleet.batches.submit(ids.slice(0, count).map(toTask), { name, concurrency: 6 });

/** Attaches to a batch on another machine, which is another directory. Returns what it finds there at the end. */
async function attachIn(
  machine: string,
  name: string,
): Promise<{ results: TaskResult[]; files: Record<string, string> }> {
  const cwd = join(directory, machine);
  await mkdir(cwd);
  const { stderr } = await cli.text(['batch', 'attach', name, '--out', 'results.jsonl'], { cwd });
  expect(stderr).not.toContain('error');
  const lines = (await readFile(join(cwd, 'results.jsonl'), 'utf8')).split('\n').slice(0, -1);
  const found = await readdir(join(cwd, 'outputs'), { recursive: true, withFileTypes: true });
  const paths = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = paths.sort().map(async (path) => [path.slice(cwd.length), await readFile(path, 'utf8')]);
  return {
    results: lines.map((line): TaskResult => JSON.parse(line)).sort((a, b) => (a.id < b.id ? -1 : 1)),
    files: Object.fromEntries(await Promise.all(read)),
  };
}

/** Returns what is the same in every run of a task: not times, names of sessions and attempts. */
function lasting({ id, task, repeat, outcome, passed, score, endedIn, setup, results, grade, outputs }: TaskResult) {
  const of = ({ outcome, exitCode, stdout }: Result) => `${outcome} ${exitCode} ${stdout}`;
  const toName = ({ error }: { error?: { code: string } | undefined }) => error?.code ?? 'fetched';
  return {
    ...{ id, task, repeat, outcome, passed, score, endedIn, outputs: Object.values(outputs ?? {}).map(toName) },
    ...{ setup: setup?.map(of), results: results.map(of), grade: grade && of(grade) },
  };
}

/** Returns how often a worker has taken the batch. */
const takesOf = (name: string) =>
  stack.workers
    .flatMap(({ log }) => log.split('\n'))
    .filter((line) => {
      return line.includes('batch.taken') && line.includes(`"${name}"`);
    }).length;

/** Resolves with the worker that drives the batch, once it has so many results, and after so many other drivers. */
async function driverOf(name: string, atLeast: number, before = 0): Promise<TestWorker> {
  const batch = await until(
    async () => ({ ...(await stack.fleet.batches.get(name)), takes: takesOf(name) }),
    ({ results, state, takes }) => results >= atLeast && state === 'running' && takes > before,
  );
  const worker = stack.workers.find(({ hostId }) => hostId === batch.hostId);
  if (worker === undefined) throw new Error(`no worker drives ${name}`);
  return worker;
}

describe('a detached batch', () => {
  test('has the results of an undisturbed one when its worker is killed five times', async () => {
    await submit('calm', ids.length);
    const calm = await attachIn('calm', 'calm');
    await submit('killed', ids.length);
    for (let kill = 1; kill <= 5; kill++) {
      const worker = await driverOf('killed', kill, kill - 1);
      await worker.kill();
      await worker.start();
    }
    const [first, second] = [await attachIn('first', 'killed'), await attachIn('second', 'killed')];
    expect(first.results.map(lasting)).toEqual(calm.results.map(lasting));
    expect(first.results.map(({ id }) => id)).toEqual([...ids].sort());
    expect(first.results.filter(({ passed }) => !passed).map(({ id }) => id)).toEqual(['t5', 't7']);
    expect(lasting(first.results[0] as TaskResult).outputs).toEqual(['fetched', 'FILE_NOT_FOUND']);
    expect(first.files['/outputs/t3/first']).toBe('given3\n');
    expect(first.files).toEqual(calm.files);
    expect(second.results.map(lasting)).toEqual(first.results.map(lasting));
    expect(second.files).toEqual(first.files);
    expect(takesOf('killed')).toBeGreaterThanOrEqual(6);
    const [whole, disturbed] = [await stack.fleet.batches.get('calm'), await stack.fleet.batches.get('killed')];
    expect(disturbed).toMatchObject({ state: 'ended', results: ids.length, totals: whole.totals });
  }, 120_000);

  test('names an output that is too large by its path in the sandbox', async () => {
    const outputs = { '/workspace/big': 'outputs/{id}/big', '/workspace/small': 'outputs/{id}/small' };
    const task = { id: 'a', script: 'head -c 6M /dev/urandom > big; echo it > small', outputs };
    await stack.fleet.batches.submit([task], { name: 'large' });
    const { results, files } = await attachIn('large', 'large');
    expect(files).toEqual({ '/outputs/a/small': 'it\n' });
    const { code, message } = results[0]?.outputs?.['/workspace/big']?.error ?? {};
    expect([code, message]).toEqual([
      'FILE_TOO_LARGE',
      '/workspace/big was not kept: the outputs of one run of a task may take 4 MiB in a detached batch, sealed.',
    ]);
  });

  test('gets nothing from a worker that was frozen past its lease', async () => {
    await submit('frozen', 12);
    const frozen = await driverOf('frozen', 2);
    frozen.signal('SIGSTOP');
    await until(
      () => stack.fleet.batches.get('frozen'),
      ({ hostId }) => hostId !== frozen.hostId,
      20_000,
    );
    frozen.signal('SIGCONT');
    await until(
      () => frozen.log,
      (log) => log.includes('batch.left'),
    );
    const ended = await until(
      () => stack.fleet.batches.get('frozen'),
      ({ state }) => state === 'ended',
      30_000,
    );
    expect(ended).toMatchObject({ results: 12, totals: { tasks: 12, passed: 10, failed: 2 } });
    const results = await Array.fromAsync(stack.fleet.batches.attach('frozen'));
    expect(results.map(({ id }) => id).sort()).toEqual(ids.slice(0, 12).sort());
  }, 120_000);
});
