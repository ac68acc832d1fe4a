import { execFile } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Fleet, readBatchManifest, type TaskResult } from '@shellfleet/client';
import { packPath } from '@shellfleet/client/driving';
import {
  appendResults,
  type BatchLease,
  endBatch,
  readBlob,
  readDueBatches,
  readTasks,
  renewBatch,
  storeManifest,
  storeOutputs,
  takeBatch,
} from '@shellfleet/mailbox';
import { batchKeys, fleetKeys, OUTCOMES } from '@shellfleet/protocol';
import { createSealer } from '@shellfleet/sealing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { runCli, startCli } from '../support/run-cli.ts';
import { until } from '../support/until.ts';

// What a client does with detached batches. The test takes the part of their worker.

let stage: ClientStage;
let fleet: Fleet;
let directory: string;
beforeAll(async () => {
  stage = await setClientStage();
  fleet = await stage.connect();
});
afterAll(() => stage[Symbol.asyncDispose]());
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-detached-'));
  return () => rm(directory, { recursive: true });
});

const at = (name: string) => join(directory, name);
const cli = (...args: string[]) => runCli(stage, ['batch', ...args], { cwd: directory });
const resultsIn = async (path: string): Promise<TaskResult[]> =>
  (await readFile(path, 'utf8')).split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));

async function drive(name: string): Promise<BatchLease> {
  const access = {
    ...{ redis: stage.redis, sealer: createSealer([stage.sealKey]), fleet: fleetKeys(stage.keyspace) },
    keys: batchKeys(stage.keyspace, 'default', name),
  };
  const due = (await readDueBatches(stage.redis, access.fleet, 100)).find((one) => one.name === name);
  const taken = due && (await takeBatch(access, due, 'host-1'));
  if (taken === undefined) throw new Error(`${name} was not due`);
  return taken.lease;
}

const lineOf = (id: string, more: Partial<TaskResult> = {}) =>
  JSON.stringify({
    ...{ id, task: id, repeat: 1, passed: true, outcome: 'success', sessionId: 's', results: [], attempts: 1 },
    ...{ startedAt: new Date(0).toISOString(), durationMs: 1, outputBytes: 0, ...more },
  });
const totalsOf = (passed: number, tasks: number) => ({
  ...Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])),
  ...{ tasks, skipped: 0, passed, failed: tasks - passed, infrastructure: 0, cancelled: 0 },
});
const progressOf = (done: number) => ({
  ...{ done, passed: done, failed: 0, infrastructure: 0, cancelled: 0, skipped: 0, running: 0, perSecond: 1 },
});

/** Stores an output of a run of a task, as a worker that has fetched it. */
async function storeOutput(lease: BatchLease, run: string, path: string, text: string): Promise<void> {
  await writeFile(at('fetched'), text);
  await storeOutputs(lease, run, [{ path, packed: await packPath(at('fetched'), 1_000_000) }]);
  await rm(at('fetched'));
}

describe('a detached batch on the command line', () => {
  test('is submitted with its files, followed while it runs, and removed', async () => {
    await mkdir(at('in'));
    await writeFile(at('in/shared'), 'shared');
    await writeFile(
      at('tasks.yaml'),
      `- { id: a/1, script: "true", files: { /f: in }, outputs: { /log: "logs/{id}/log" } }
- { id: b, script: "false", files: { /f: in/../in }, outputs: { /log: "logs/{id}/log" } }
`,
    );
    const submitted = await cli('run', 'tasks.yaml', '--detach', '--name', 'nightly', '--timeout', '5s');
    expect(submitted).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('batch attach nightly') });
    expect((await cli('run', 'tasks.yaml', '--detach', '--name', 'nightly', '--timeout', '5s')).exitCode).toBe(0);
    await rm(at('in'), { recursive: true });
    const lease = await drive('nightly');
    const tasks = await Array.fromAsync(readTasks(lease, lease.id));
    const blobs = new Set(tasks.flatMap((task) => task.blobs?.['/f'] ?? []));
    expect(blobs.size).toBe(1);
    expect((await Array.fromAsync(readBlob(lease, lease.id, [...blobs][0] ?? ''))).length).toBe(1);
    const attached = startCli(
      stage,
      ['batch', 'attach', 'nightly', '--out', 'results.jsonl', '--report', 'report.html'],
      {},
      directory,
    );
    await storeManifest(lease, { name: 'nightly', images: { default: ['sha256:1'] } });
    await storeOutput(lease, 'a/1', '/log', 'the log');
    await renewBatch(lease, progressOf(1));
    await appendResults(lease, [lineOf('a/1', { outputs: { '/log': { path: '/etc/elsewhere' } } })]);
    await until(
      () => resultsIn(at('results.jsonl')).catch(() => []),
      (lines) => lines.length === 1,
    );
    expect((await cli('ls')).stdout.toString()).toMatch(/nightly +running +2 +1 +1 +host-1/);
    await appendResults(lease, [lineOf('b', { passed: false, outcome: 'failure' })]);
    await endBatch(lease, { totals: totalsOf(1, 2), progress: progressOf(2) });
    expect(await attached.end).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('1 passed, 1 did not') });
    expect((await resultsIn(at('results.jsonl'))).map(({ id, outputs }) => [id, outputs?.['/log']?.path])).toEqual([
      ['a/1', at('logs/a%2F1/log')],
      ['b', undefined],
    ]);
    expect(await readFile(at('logs/a%2F1/log'), 'utf8')).toBe('the log');
    expect(await readFile(at('report.html'), 'utf8')).toContain('<title>nightly: 50.0 % passed</title>');
    expect(await readBatchManifest(at('results.jsonl'))).toMatchObject({ images: { default: ['sha256:1'] } });
    expect(await cli('rm', 'nightly')).toMatchObject({ exitCode: 0 });
    expect(await cli('attach', 'nightly', '--out', 'other.jsonl')).toMatchObject({
      exitCode: 125,
      stderr: expect.stringContaining('is not known in the tenant default'),
    });
  });

  test('is left at Ctrl-C and goes on, and a later attach continues the file', async () => {
    await fleet.batches.submit([{ id: 'a', script: 'true' }], { name: 'left', repeats: 3 });
    const lease = await drive('left');
    await appendResults(lease, [lineOf('a#1', { task: 'a' })]);
    const first = startCli(stage, ['batch', 'attach', 'left', '--out', 'left.jsonl'], {}, directory);
    await until(
      () => resultsIn(at('left.jsonl')).catch(() => []),
      (lines) => lines.length === 1,
    );
    const beside = await cli('attach', 'left', '--out', 'left.jsonl');
    expect(beside).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('is written by process') });
    first.child.kill('SIGINT');
    expect(await first.end).toMatchObject({ exitCode: 130, stderr: expect.stringContaining('which goes on') });
    await appendResults(lease, [lineOf('a#2', { task: 'a', repeat: 2 }), lineOf('a#3', { task: 'a', repeat: 3 })]);
    await endBatch(lease, { totals: totalsOf(3, 3), progress: progressOf(3) });
    const second = await cli('attach', 'left', '--out', 'left.jsonl', '--json');
    expect([second.exitCode, second.stdout.toString().split('\n').length - 1]).toEqual([0, 2]);
    expect((await resultsIn(at('left.jsonl'))).map(({ id }) => id)).toEqual(['a#1', 'a#2', 'a#3']);
    await writeFile(at('taken'), 'mine');
    expect((await cli('attach', 'left', '--out', 'taken')).stderr).toContain('exists and was not touched');
  });

  test('is cancelled before a worker has it, with the exit code of a cancellation', async () => {
    await fleet.batches.submit([{ id: 'a', script: 'true' }], { name: 'unwanted' });
    expect((await cli('cancel', 'unwanted')).stderr).toContain('The batch unwanted ends.');
    const attached = await cli('attach', 'unwanted', '--out', 'none.jsonl');
    expect(attached).toMatchObject({ exitCode: 130, stderr: expect.stringContaining('was cancelled by') });
    expect((await cli('ls')).stdout.toString()).toMatch(/unwanted +ended: cancelled/);
  });

  test('says that the same tasks have run, and that a cancelled batch ends later', async () => {
    await writeFile(at('tasks.jsonl'), '{"id":"a","script":"true"}\n');
    const submit = () => cli('run', 'tasks.jsonl', '--detach', '--name', 'again');
    expect((await submit()).stderr).toContain('the fleet goes on without this process');
    const lease = await drive('again');
    expect((await cli('rm', 'again')).stderr).toContain('Cancel it first');
    await cli('cancel', 'again');
    expect((await cli('rm', 'again')).stderr).toContain('ends within seconds');
    await endBatch(lease, { totals: totalsOf(1, 1), progress: progressOf(1) });
    const second = await submit();
    expect(second).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('has ended, and they do not run') });
  });

  test('has a free name once it is cancelled after the death of its submitter', async () => {
    const { state } = batchKeys(stage.keyspace, 'default', 'dead');
    await stage.redis.hset(state, { id: 'x', state: 'storing', by: 'ada', createdAt: 1, tasks: 1, digest: 'd' });
    const other = () => fleet.batches.submit([{ id: 'a', script: 'true' }], { name: 'dead' });
    await expect(other()).rejects.toMatchObject({ message: expect.stringContaining('cancel that batch') });
    await expect(fleet.batches.get('dead')).rejects.toMatchObject({ message: expect.stringContaining('cancel it') });
    expect(await fleet.batches.cancel('dead')).toBe(true);
    await fleet.batches.remove('dead');
    expect(await other()).toMatchObject({ state: 'waiting' });
  });

  test('is refused with flags about results, and needs --out without --detach', async () => {
    await writeFile(at('tasks.jsonl'), '{"id":"a","script":"true"}\n');
    expect((await cli('run', 'tasks.jsonl', '--detach', '--junit', 'x.xml')).stderr).toContain('--junit needs the');
    expect((await cli('run', 'tasks.jsonl', '--detach', '--out', 'x')).stderr).toContain('--out needs the');
    expect(await cli('run', 'tasks.jsonl')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("'--out") });
  });
});

describe('a batch that is submitted', () => {
  test.each([
    ['../x', 'output'],
    ['/etc/{id}', 'output'],
    ['logs/../../x', 'output'],
    ['.git/hooks/post-checkout', 'dot'],
  ])('may have no output at %s', async (local, word) => {
    const tasks = [{ id: 'a', script: 'true', outputs: { '/o': local } }];
    await expect(fleet.batches.submit(tasks)).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringContaining(word),
    });
  });

  test('is not stored when a task is invalid, a file missing, or the client signs', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const signing = await stage.connect({ signingKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() });
    const task = { id: 'a', script: 'true' };
    const before = await stage.keys();
    await expect(fleet.batches.submit([task, task])).rejects.toThrow('task 2 has the id of an earlier one');
    await expect(fleet.batches.submit([{ ...task, files: { '/f': at('missing') } }])).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
    });
    await expect(signing.batches.submit([task])).rejects.toThrow('cannot sign');
    const intercepted = await stage.connect({ interceptors: [(input, next) => next(input)] });
    await expect(intercepted.batches.submit([task])).rejects.toThrow('has interceptors');
    expect(await stage.keys()).toEqual(before);
  });

  test('stops reading files once they are too large together', async () => {
    let read = 0;
    const tasks = async function* () {
      for (; read < 8; read++) {
        await writeFile(at(`${read}`), randomBytes(16_777_216));
        yield { id: `${read}`, script: 'true', files: { '/f': at(`${read}`) } };
      }
    };
    await expect(fleet.batches.submit(tasks, { name: 'large' })).rejects.toMatchObject({
      ...{ code: 'BATCH_TOO_LARGE', context: { path: at('2') } },
    });
    expect(read).toBe(2);
  });
});

describe('an attach', () => {
  test('writes nothing through a link, to what was there, nor what the task has not', async () => {
    const templates = { '/o': 'outside/x', '/p': 'inside/{id}/x', '/q': '{id}', '/r': 'out.jsonl' };
    await fleet.batches.submit([{ id: 'a', script: 'true', outputs: templates }], { name: 'linked' });
    await mkdir(at('secret'));
    await mkdir(at('work'));
    await writeFile(at('work/a'), 'mine');
    await symlink(at('secret'), at('work/outside'));
    const lease = await drive('linked');
    const paths = [...Object.keys(templates), '/other'];
    for (const path of paths) await storeOutput(lease, 'a', path, path);
    const outputs = Object.fromEntries(paths.map((path) => [path, { path: 'x' }]));
    await appendResults(lease, [lineOf('a', { passed: false, outcome: 'error', outputs })]);
    await endBatch(lease, { totals: totalsOf(0, 1), progress: progressOf(0) });
    const attachTo = (out: string) => runCli(stage, ['batch', 'attach', 'linked', '--out', out], { cwd: at('work') });
    const denied = { error: { code: 'FILE_DENIED' } };
    const refused = { '/o': denied, '/q': denied, '/r': denied, '/other': denied };
    // The second call fetches the error again, and replaces what the first one has written.
    for (let call = 1; call <= 2; call++) {
      await attachTo('out.jsonl');
      const [line] = await resultsIn(at('work/out.jsonl'));
      expect(line?.outputs).toMatchObject({ ...refused, '/p': { path: at('work/inside/a/x') } });
    }
    expect(await readdir(at('secret'))).toEqual([]);
    expect(await readFile(at('work/a'), 'utf8')).toBe('mine');
    await promisify(execFile)('mkfifo', [at('work/pipe')]);
    const [piped] = await Promise.all([readFile(at('work/pipe'), 'utf8'), attachTo('pipe')]);
    expect(JSON.parse(piped).outputs['/p']).toMatchObject(denied);
    const report = await cli('attach', 'linked', '--out', 'work/pipe', '--report', 'r.html');
    expect(report).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--out must name a file') });
  });

  test.each(['directory', 'file'])('writes nothing to a %s through a link in an earlier output', async (kind) => {
    const name = `linked-${kind}`;
    const tasks = [
      { id: 'a', script: 'true', outputs: { '/d': 'x/{id}' } },
      { id: 'b', script: 'true', outputs: { '/k': 'x/a/k' } },
    ];
    await fleet.batches.submit(tasks, { name });
    await mkdir(at('made/a'), { recursive: true });
    await mkdir(at('made/b'));
    await writeFile(at('made/b/keys'), 'of the sandbox');
    await mkdir(at('secret'));
    await writeFile(at('secret/keys'), 'mine');
    await symlink(kind === 'file' ? at('secret/keys') : at('secret'), at('made/a/k'));
    const lease = await drive(name);
    const link = await packPath(at('made/a'), 1_000_000);
    const packed = await packPath(kind === 'file' ? at('made/b/keys') : at('made/b'), 1_000_000);
    await storeOutputs(lease, 'a', [{ path: '/d', packed: link }]);
    await storeOutputs(lease, 'b', [{ path: '/k', packed }]);
    const lines = [lineOf('a', { outputs: { '/d': { path: '' } } }), lineOf('b', { outputs: { '/k': { path: '' } } })];
    await appendResults(lease, lines);
    await endBatch(lease, { totals: totalsOf(2, 2), progress: progressOf(2) });
    await mkdir(at('work'));
    await runCli(stage, ['batch', 'attach', name, '--out', 'out.jsonl'], { cwd: at('work') });
    const [, line] = await resultsIn(at('work/out.jsonl'));
    expect(line?.outputs).toMatchObject({ '/k': { error: { code: 'FILE_DENIED' } } });
    expect(await readFile(at('secret/keys'), 'utf8')).toBe('mine');
  });

  test('waits while Redis is away, and fetches every output afterwards', async () => {
    const tasks = ['a', 'b'].map((id) => ({ id, script: 'true', outputs: { '/o': '{id}.txt' } }));
    await fleet.batches.submit(tasks, { name: 'outage' });
    const lease = await drive('outage');
    for (const { id } of tasks) {
      await storeOutput(lease, id, '/o', id);
      await appendResults(lease, [lineOf(id, { outputs: { '/o': { path: '' } } })]);
    }
    await endBatch(lease, { totals: totalsOf(2, 2), progress: progressOf(2) });
    const before = process.cwd();
    process.chdir(directory);
    try {
      const results = fleet.batches.attach('outage', { out: at('outage.jsonl') });
      expect(await results.next()).toMatchObject({ value: { id: 'a' } });
      stage.own.freeze();
      const second = results.next();
      await setTimeout(3_000);
      stage.own.thaw();
      expect(await second).toMatchObject({ value: { id: 'b', outputs: { '/o': { path: expect.any(String) } } } });
      expect(await results.next()).toMatchObject({ done: true });
      expect(await readFile(at('b.txt'), 'utf8')).toBe('b');
    } finally {
      stage.own.thaw();
      process.chdir(before);
    }
  });

  test('ends with its client, and at its signal, while Redis is away', async () => {
    const other = await stage.connect();
    await fleet.batches.submit([{ id: 'a', script: 'true' }], { name: 'left-away' });
    const lease = await drive('left-away');
    await appendResults(lease, [lineOf('a')]);
    const stop = new AbortController();
    const ofClosed = other.batches.attach('left-away');
    const ofAborted = fleet.batches.attach('left-away', { signal: stop.signal });
    for (const results of [ofClosed, ofAborted]) expect(await results.next()).toMatchObject({ value: { id: 'a' } });
    stage.own.freeze();
    try {
      const ends = Promise.allSettled([ofClosed.next(), ofAborted.next()]);
      await setTimeout(2_500);
      stop.abort(new Error('enough'));
      await other.close();
      expect(await ends).toEqual([
        { status: 'rejected', reason: expect.objectContaining({ code: 'QUEUE_UNAVAILABLE' }) },
        { status: 'rejected', reason: expect.objectContaining({ message: 'enough' }) },
      ]);
    } finally {
      stage.own.thaw();
    }
  });

  test('rejects with the error of a batch that failed as a whole', async () => {
    await fleet.batches.submit([{ id: 'a', script: 'true' }], { name: 'broken' });
    const failure = { code: 'UNAUTHORIZED', message: 'no key signs here', retryable: false };
    await endBatch(await drive('broken'), { totals: {}, progress: {}, failure });
    await expect(Array.fromAsync(fleet.batches.attach('broken'))).rejects.toMatchObject(failure);
    expect(await fleet.batches.list()).toContainEqual(
      expect.objectContaining({ name: 'broken', state: 'ended', error: failure }),
    );
  });
});
