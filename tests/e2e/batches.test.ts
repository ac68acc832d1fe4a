import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Result, Task, TaskResult } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { connectTestRedis } from '../support/mailbox-session.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Batches whose tasks have every step: files, setup, scripts, outputs and a grade, in containers.

let stack: TestFleet;
let cli: FleetCli;
let directory: string;
beforeAll(async () => {
  stack = await startFleet({ slots: 6 });
  cli = new FleetCli(stack);
  directory = await mkdtemp(join(tmpdir(), 'sf-batches-'));
  await writeFile(join(directory, 'input'), 'given');
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const inDirectory = (...names: string[]) => join(directory, ...names);
const readLines = async (path: string) => (await readFile(path, 'utf8').catch(() => '')).split('\n').slice(0, -1);
const readResults = async (path: string): Promise<TaskResult[]> =>
  (await readLines(path)).map((line): TaskResult => JSON.parse(line)).sort((a, b) => (a.id < b.id ? -1 : 1));

/** Returns every file below a directory, with its content. */
async function readTree(path: string): Promise<Record<string, string>> {
  const found = await readdir(path, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = files.map(async (file) => [file.slice(path.length + 1), await readFile(file, 'utf8')]);
  return Object.fromEntries((await Promise.all(read)).sort());
}

/** Returns what is the same in every run of a task: not times, ids of commands and attempts. */
function lasting({ id, task, repeat, outcome, passed, score, endedIn, setup, results, grade, outputs }: TaskResult) {
  const of = ({ outcome, exitCode, stdout }: Result) => `${outcome} ${exitCode} ${stdout}`;
  return {
    ...{ id, task, repeat, outcome, passed, score, endedIn, outputs: Object.keys(outputs ?? {}) },
    ...{ setup: setup?.map(of), results: results.map(of), grade: grade && of(grade) },
  };
}

describe('a task of a batch', () => {
  test('has files and setup before its scripts, and after a failure outputs and a grade', async () => {
    const outputs = {
      '/workspace/made': inDirectory('fetched', '{id}', '{repeat}', 'made'),
      '/workspace/none': inDirectory('fetched', '{id}', '{repeat}', 'none'),
    };
    const task: Task = {
      ...{ id: 'a/b', files: { '/workspace/in': inDirectory('input') }, outputs },
      setup: ['mkdir made && cp in made/one'],
      script: ['echo two > made/two', 'exit 3', 'echo never'],
      grade: 'cat made/two; echo 0.5',
    };
    const batch = stack.fleet.batch([task], { repeats: 2 });
    const started: string[] = [];
    batch.on('started', ({ id }) => started.push(id));
    const results = await Array.fromAsync(batch);
    expect(results.map(lasting).sort((a, b) => a.repeat - b.repeat)).toEqual(
      [1, 2].map((repeat) => ({
        ...{ id: `a/b#${repeat}`, task: 'a/b', repeat, outcome: 'failure', passed: true, score: 0.5 },
        ...{ endedIn: undefined, outputs: Object.keys(outputs), setup: ['success 0 '] },
        ...{ results: ['success 0 ', 'failure 3 '], grade: 'success 0 two\n0.5\n' },
      })),
    );
    expect(started.sort()).toEqual(['a/b#1', 'a/b#2']);
    expect(batch.totals).toMatchObject({ passed: 2, failed: 0, failure: 2 });
    expect(results[0]?.outputs?.['/workspace/none']?.error?.code).toBe('FILE_NOT_FOUND');
    expect(results[0]?.outputBytes).toBe(8);
    for (const { setup = [], results: ran, grade, cpuMs, peakMemoryBytes } of results) {
      const usages = [...setup, ...ran, ...(grade === undefined ? [] : [grade])].map(({ usage }) => usage);
      expect(usages).toHaveLength(4);
      expect(cpuMs).toBe(usages.reduce((sum, usage) => sum + (usage?.cpuMs ?? Number.NaN), 0));
      expect(peakMemoryBytes).toBe(Math.max(...usages.map((usage) => usage?.peakMemoryBytes ?? Number.NaN)));
    }
    expect(await readTree(inDirectory('fetched'))).toEqual({
      ...{ 'a%2Fb/1/made/one': 'given', 'a%2Fb/1/made/two': 'two\n' },
      ...{ 'a%2Fb/2/made/one': 'given', 'a%2Fb/2/made/two': 'two\n' },
    });
  });

  test('is graded in a fresh session that has its files, its setup and its outputs', async () => {
    const place = inDirectory('patches', '{id}');
    const base = {
      ...{ files: { '/workspace/in': inDirectory('input') }, setup: ['cp in base'] },
      ...{ script: 'echo better > /workspace/patch; touch left', outputs: { '/workspace/patch': place } },
    };
    const grade = { script: '[ ! -e left ] && cat base patch && echo \'{"pass": false, "score": 7}\'', fresh: true };
    const [result] = await Array.fromAsync(stack.fleet.batch([{ id: 'fresh', ...base, grade }]));
    expect(result?.grade).toMatchObject({ outcome: 'success', stdout: 'givenbetter\n{"pass": false, "score": 7}\n' });
    expect(result).toMatchObject({ outcome: 'success', passed: false, score: 7 });
    expect(result?.grade?.sessionId).not.toBe(result?.sessionId);
  });

  test('gives up its slot before a fresh session grades it', async () => {
    const tasks = Array.from({ length: 12 }, (_, n) => ({
      ...{ id: `slot-${n}`, script: 'true', grade: { script: 'true', fresh: true } },
    }));
    const results = await Array.fromAsync(stack.fleet.batch(tasks, { concurrency: 12 }));
    expect(results.map(({ passed }) => passed)).toEqual(tasks.map(() => true));
  });

  test('ends in its setup, without scripts and grade, when that fails', async () => {
    const task = { id: 'a', setup: ['exit 5'], script: 'echo never', grade: 'true' };
    const [result] = await Array.fromAsync(stack.fleet.batch([task]));
    expect(result).toMatchObject({ outcome: 'failure', passed: false, endedIn: 'setup', results: [] });
    expect(result?.grade).toBeUndefined();
  });

  test('ends as a timeout at its deadline, and its outputs are fetched', async () => {
    const outputs = { '/workspace/log': inDirectory('late', '{id}') };
    const task = { id: 'late', script: 'echo begun > log; exec sleep 600', outputs, grade: 'true', deadlineMs: 5_000 };
    const [result] = await Array.fromAsync(stack.fleet.batch([task]));
    expect(result).toMatchObject({ outcome: 'timeout', endedBy: 'deadline', passed: false });
    expect(await readTree(inDirectory('late'))).toEqual({ late: 'begun\n' });
  });
});

describe('a batch at a terminal', () => {
  test('shows how far it is', async () => {
    await writeFile(inDirectory('two.jsonl'), '{"id":"a","script":"sleep 2"}\n{"id":"b","script":"exit 1"}\n');
    const words = ['batch', 'run', inDirectory('two.jsonl'), '--out', inDirectory('two.out')];
    const { exitCode, shown } = await cli.atTerminal(words, async (_type, untilShown) => {
      await untilShown('1 of 2 tasks: 0 passed, 1 failed, 0 infrastructure, 1 running, 0 queued · ');
    });
    expect({ exitCode, shown }).toMatchObject({ exitCode: 1, shown: expect.stringContaining('slowest a ') });
  });
});

describe('a batch whose driver is killed five times', () => {
  const ids = Array.from({ length: 20 }, (_, index) => `t${index}`);
  const toTask = (id: string, index: number, run: string): Task => ({
    ...{ id, files: { '/workspace/in': inDirectory('input') }, setup: [`echo ${index} > n`] },
    script: [
      'sleep 0.2; mkdir out; cat in n > out/first',
      `[ $(cat n) != 5 ] && sleep 0.2 && echo ${id} | tee out/second`,
    ],
    outputs: { '/workspace/out': inDirectory(run, 'outputs', '{id}') },
    grade: `cat out/first out/second && [ $(cat n) != 7 ] && echo ${index}`,
  });

  /** Runs the batch in a directory, and kills so many drivers, each when tasks have ended. Returns the last end. */
  async function runKilled(run: string, kills: number) {
    await mkdir(inDirectory(run));
    await writeFile(
      inDirectory(run, 'tasks.jsonl'),
      ids.map((id, index) => `${JSON.stringify(toTask(id, index, run))}\n`).join(''),
    );
    const out = inDirectory(run, 'results.jsonl');
    const words = ['batch', 'run', inDirectory(run, 'tasks.jsonl'), '--out', out, '--name', run, '--concurrency', '4'];
    for (let index = 0; index < kills; index++) {
      const before = (await readLines(out)).length;
      const driver = cli.start(index === 0 ? words : [...words, '--resume']);
      await until(
        () => readLines(out),
        (lines) => lines.length >= before + 2,
        60_000,
      );
      driver.child.kill('SIGKILL');
      await driver.end;
    }
    const junit = inDirectory(run, 'junit.xml');
    const resumed = kills === 0 ? words : [...words, '--resume'];
    return cli.text([...resumed, '--junit', junit]);
  }

  test('has the results, outputs and JUnit file of a batch that nothing disturbed', async () => {
    const [calm, killed] = [await runKilled('calm', 0), await runKilled('killed', 5)];
    // The exit code of a driver is about the tasks that it ran.
    expect([calm.exitCode, [0, 1].includes(killed.exitCode ?? -1)]).toEqual([1, true]);
    const [whole, resumed] = [inDirectory('calm', 'results.jsonl'), inDirectory('killed', 'results.jsonl')];
    const results = (await readResults(whole)).map(lasting);
    expect(results.map(({ id }) => id)).toEqual([...ids].sort());
    expect(results.filter(({ passed }) => !passed).map(({ id }) => id)).toEqual(['t5', 't7']);
    expect((await readResults(resumed)).map(lasting)).toEqual(results);
    expect(await readTree(inDirectory('killed', 'outputs'))).toEqual(await readTree(inDirectory('calm', 'outputs')));
    const manifest = JSON.parse(await readFile(`${resumed}.batch`, 'utf8'));
    expect(manifest).toMatchObject({ tasks: { count: ids.length }, hosts: [{ version: expect.any(String) }] });
    expect(manifest.images.default).toEqual([expect.stringMatching(/^sha256:/)]);
    expect(manifest.drivers.map(({ endedAt }: { endedAt?: string }) => endedAt !== undefined)).toEqual([
      ...[false, false, false, false, false, true],
    ]);
    const junit = await readFile(inDirectory('killed', 'junit.xml'), 'utf8');
    expect(junit).toMatch(/<testsuite name="[^"]+" tests="20" failures="2" errors="0" skipped="0" time="[\d.]+">/);
    expect(junit).toContain('<failure message="the grade did not pass, score 0" type="success">given7\nt7\n</failure>');
  }, 180_000);

  test('runs again only what did not pass with --only failed, and reports about all', async () => {
    await cp(inDirectory('calm'), inDirectory('again'), { recursive: true });
    const out = inDirectory('again', 'results.jsonl');
    const words = ['batch', 'run', inDirectory('again', 'tasks.jsonl'), '--out', out, '--resume', '--only', 'failed'];
    const report = inDirectory('again', 'report.html');
    const compared = ['--report', report, '--compare', inDirectory('calm', 'results.jsonl')];
    const { stderr } = await cli.text([...words, ...compared]);
    expect(stderr).toContain('0 passed, 2 did not, 18 had ended before.');
    const again = await readResults(out);
    expect(again.filter(({ attempts }) => attempts === 2).map(({ id }) => id)).toEqual(['t5', 't7']);
    expect(again).toHaveLength(ids.length);
    const page = await readFile(report, 'utf8');
    expect(page).toContain('<title>calm: 90.0 % passed</title>');
    expect(page).toContain('<dt>Unchanged</dt><dd>20</dd>');
    // The times are those of real receipts.
    expect(page).toMatch(/<div class="host"><h3>h1<\/h3><p class="muted">20 sessions, at most [1-4] at one time/);
    expect(page).toContain('<b>The grade did not pass, exit code 1</b>');
    // Sandboxes measure what commands use.
    expect(page).toMatch(/<dt>Processor time<\/dt><dd>[\d.]+ m?s<\/dd>/);
    expect(page).toMatch(/<dt>Peak memory of a task<\/dt><dd>[\d.]+ [kM]B<\/dd>/);
  });

  test('leaves nothing of its tasks in Redis', async () => {
    await using connection = await connectTestRedis();
    const keys = () => connection.redis.keys(`${stack.keyspace}:{default:batch-killed-*`);
    await until(keys, (left) => left.length === 0, 40_000);
  });
});
