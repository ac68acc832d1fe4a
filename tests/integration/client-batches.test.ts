import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { BatchProgress, Fleet, Task, TaskResult } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, type StageHost, setClientStage } from '../support/client-stage.ts';
import { runCli, startCli } from '../support/run-cli.ts';
import { until } from '../support/until.ts';

// Batches on a host whose commands run on this machine, so that each run of a task can append a line to a file.

let stage: ClientStage;
let host: StageHost;
let fleet: Fleet;
let directory: string;
beforeAll(async () => {
  stage = await setClientStage();
  host = await stage.startHost({ slots: 200 });
  fleet = await stage.connect();
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-batches-'));
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const linesOf = async (path: string) => (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean);
const toJsonLines = (tasks: readonly Task[]) => tasks.map((task) => `${JSON.stringify(task)}\n`).join('');
const resultsIn = async (path: string): Promise<TaskResult[]> => (await linesOf(path)).map((line) => JSON.parse(line));
const runAll = (tasks: Task[], name: string, by = fleet) => Array.fromAsync(by.batch(tasks, { name }));

describe('a listener that throws', () => {
  test.each(['started', 'ended', 'progress'] as const)('ends the batch with its error at %s', async (event) => {
    const tasks = Array.from({ length: 40 }, (_, n) => ({ id: `${n}`, script: 'true' }));
    const batch = fleet.batch(tasks, { name: `throws-${event}`, concurrency: 4 });
    batch.on(event, () => {
      throw new Error('from a listener');
    });
    await expect(batch.run()).rejects.toThrow('from a listener');
  });
});

describe('a batch of 60 tasks', () => {
  test('runs each task once, though its driver is killed three times', async () => {
    const [file, out, ran] = [
      join(directory, 'killed.jsonl'),
      join(directory, 'killed.out'),
      join(directory, 'killed.ran'),
    ];
    const ids = Array.from({ length: 60 }, (_, index) => `t${index}`);
    const tasks = ids.map((id) => ({ id, script: [`sleep 0.1; echo ${id} >> ${ran}`, `echo ${id}`] }));
    await writeFile(file, toJsonLines(tasks));
    const batch = ['batch', 'run', file, '--out', out, '--concurrency', '6'];
    for (const [index, atLeast] of [10, 25, 40].entries()) {
      const driver = startCli(stage, index === 0 ? batch : [...batch, '--resume']);
      await until(
        () => linesOf(ran),
        (lines) => lines.length >= atLeast,
      );
      driver.child.kill('SIGKILL');
      await driver.end;
    }
    const { exitCode, stderr } = await runCli(stage, [...batch, '--resume']);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0, stderr: expect.stringContaining(' 0 did not,') });
    expect((await linesOf(ran)).sort()).toEqual([...ids].sort());
    const results = await resultsIn(out);
    expect(results.map(({ id, outcome, attempts }) => `${id} ${outcome} ${attempts}`).sort()).toEqual(
      ids.map((id) => `${id} success 1`).sort(),
    );
  }, 120_000);
});

describe('a later batch of the same name', () => {
  test('returns the Results of closed sessions without opening sessions or running anything', async () => {
    const tasks = [
      { id: 'a', script: ['echo 1', 'echo 2'] },
      { id: 'b', script: ['exit 3', 'echo never'] },
    ];
    const before = host.began.length;
    const first = await runAll(tasks, 'same');
    const began = host.began.length;
    expect(began - before).toBe(3);
    // A batch does not wait until its sessions have closed.
    await expect.poll(() => Array.fromAsync(fleet.sessions())).toEqual([]);
    const again = await runAll(tasks, 'same');
    expect(host.began.length).toBe(began);
    const stripped = (results: TaskResult[]) =>
      results
        .map(({ id, sessionId, outcome, attempts, results: all }) => ({
          ...{ id, sessionId, outcome, attempts },
          commands: all.map(({ commandId, stdout }) => ({ commandId, stdout })),
        }))
        .sort((a, b) => (a.id < b.id ? -1 : 1));
    expect(stripped(again)).toEqual(stripped(first));
    expect(await Array.fromAsync(fleet.sessions())).toEqual([]);
    await runAll(tasks, 'other');
    expect(host.began.length - began).toBe(3);
  });

  /** Starts a driver that ends before it submits the second script of its task. */
  async function leaveBetweenScripts(task: Task, name: string): Promise<string> {
    const reached = Promise.withResolvers<string>();
    let submits = 0;
    const dying = await stage.connect({
      interceptors: [
        async (input, next) => {
          if (++submits < 2) return next(input);
          reached.resolve(input.sessionId);
          return new Promise(() => {});
        },
      ],
    });
    void runAll([task], name, dying).catch(() => {});
    const sessionId = await reached.promise;
    await dying.close();
    return sessionId;
  }

  test('continues after the last script in a session that is still open', async () => {
    const ran = join(directory, 'open.ran');
    const task = { id: 'a', script: [`echo 1 >> ${ran}`, `echo 2 >> ${ran}`] };
    await leaveBetweenScripts(task, 'open');
    expect(await runAll([task], 'open')).toMatchObject([{ outcome: 'success', attempts: 1 }]);
    expect(await linesOf(ran)).toEqual(['1', '2']);
  });

  test('repeats a task whose session was closed between two scripts', async () => {
    const ran = join(directory, 'closed.ran');
    const task = { id: 'a', script: [`echo 1 >> ${ran}`, `echo 2 >> ${ran}`] };
    const sessionId = await leaveBetweenScripts(task, 'closed');
    await (await fleet.attach(sessionId))?.close();
    expect(await runAll([task], 'closed')).toMatchObject([{ outcome: 'success', attempts: 2 }]);
    expect(await linesOf(ran)).toEqual(['1', '1', '2']);
  });

  test('ends a cancelled task with IDEMPOTENCY_CONFLICT if its timeout has changed', async () => {
    const stop = new AbortController();
    const batch = fleet.batch([{ id: 'a', script: 'exec sleep 600' }], { name: 'cancelled', signal: stop.signal });
    const running = batch.run();
    await until(
      () => Array.fromAsync(fleet.sessions({ state: 'busy' })),
      (busy) => busy.length === 1,
    );
    stop.abort();
    expect(await running).toMatchObject({ cancellation: 1 });
    expect(await runAll([{ id: 'a', script: 'exec sleep 600' }].slice(1), 'cancelled')).toEqual([]);
    const next = fleet.batch([{ id: 'a', script: 'exec sleep 600', timeoutMs: 200 }], { name: 'cancelled' });
    expect(await Array.fromAsync(next)).toMatchObject([{ outcome: 'error', error: { code: 'IDEMPOTENCY_CONFLICT' } }]);
  });
});

describe('a batch that ends before its last task', () => {
  const tasks = [
    { id: 'long', script: 'exec sleep 600' },
    ...['fails', 'x', 'y'].map((id) => ({ id, script: 'exit 1' })),
  ];
  const endsIn = async (out: string) =>
    (await resultsIn(out)).map(({ id, outcome, endedBy }) => `${id} ${outcome} ${endedBy ?? ''}`).sort();

  test('cancels what runs and starts nothing more when a task does not pass', async () => {
    const out = join(directory, 'stopped.out');
    const words = ['batch', 'run', '-', '--out', out, '--concurrency', '2', '--stop-on-failure'];
    const { exitCode, stderr } = await runCli(stage, words, { stdin: toJsonLines(tasks) });
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('did not pass. --resume'),
    });
    expect(await endsIn(out)).toEqual(['fails failure ', 'long cancellation failure']);
  });

  test('cancels what runs at its deadline with exit code 124, and can be resumed', async () => {
    const out = join(directory, 'deadline.out');
    const words = ['batch', 'run', '-', '--out', out];
    const stdin = toJsonLines(tasks.slice(0, 2));
    expect((await runCli(stage, [...words, '--deadline', '1500ms'], { stdin })).exitCode).toBe(124);
    expect(await endsIn(out)).toEqual(['fails failure ', 'long cancellation batch-deadline']);
    const resumed = await runCli(stage, [...words, '--resume', '--task-deadline', '500ms'], { stdin });
    expect(resumed).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('0 passed, 1 did not, 1 had ended'),
    });
    expect(await endsIn(out)).toEqual(['fails failure ', 'long timeout deadline']);
  });
});

describe('a task that is to end while Redis is away', () => {
  const commands = () => host.began.length;

  test.each(['deadline', 'signal'] as const)('ends soon after Redis is back: by its %s', async (by) => {
    const task = { id: 'long', script: 'exec sleep 600', ...(by === 'deadline' && { deadlineMs: 2_000 }) };
    const stop = new AbortController();
    const before = commands();
    const results = Array.fromAsync(fleet.batch([task], { signal: stop.signal }));
    await until(commands, (count) => count > before);
    stage.own.freeze();
    if (by === 'signal') stop.abort();
    await setTimeout(5_000);
    stage.own.thaw();
    expect(await results).toMatchObject([{ outcome: by === 'deadline' ? 'timeout' : 'cancellation', endedBy: by }]);
  });
});

describe('a task with files whose session waits for a slot', () => {
  test('ends at its deadline, and its session is closed', async () => {
    await using empty = await setClientStage();
    const waiting = await empty.connect();
    const path = join(directory, 'input');
    await writeFile(path, 'x');
    const task = { id: 'a', script: 'true', files: { '/x': path }, deadlineMs: 500 };
    const [result] = await Array.fromAsync(waiting.batch([task]));
    expect(result).toMatchObject({ outcome: 'timeout', endedBy: 'deadline', endedIn: 'files' });
    expect(await Array.fromAsync(waiting.sessions())).toEqual([]);
  });
});

describe('the events of a batch', () => {
  test('tell about each attempt, each end and the progress', async () => {
    const first = join(directory, 'events.first');
    const tasks = function* (): Generator<Task> {
      yield { id: 'flaky', script: `mkdir ${first}` };
      yield { id: 'other', script: 'true', grade: `rmdir ${first}; exit 1` };
    };
    const batch = fleet.batch(tasks, { concurrency: 1, retries: { command: 1 }, repeats: 2, count: 2 });
    const seen: string[] = [];
    let last: BatchProgress | undefined;
    batch.on('started', ({ id, attempt }) => seen.push(`${id} started ${attempt}`));
    batch.on('retried', ({ id, attempt, outcome }) => seen.push(`${id} retried ${attempt} ${outcome}`));
    batch.on('ended', ({ id, passed }) => seen.push(`${id} ended ${passed}`));
    batch.on('progress', (progress) => {
      last = progress;
    });
    expect(await batch.run()).toMatchObject({ tasks: 4, passed: 1, failed: 3, success: 3, failure: 1 });
    const idOf = (event: string) => event.split(' ')[0] ?? '';
    expect(seen.toSorted((a, b) => idOf(a).localeCompare(idOf(b)))).toEqual([
      ...['flaky#1 started 1', 'flaky#1 ended true'],
      ...['flaky#2 started 1', 'flaky#2 retried 1 failure', 'flaky#2 started 2', 'flaky#2 ended false'],
      ...['other#1 started 1', 'other#1 retried 1 success', 'other#1 started 2', 'other#1 ended false'],
      ...['other#2 started 1', 'other#2 retried 1 success', 'other#2 started 2', 'other#2 ended false'],
    ]);
    expect(last).toMatchObject({ done: 4, passed: 1, failed: 3, running: 0, queued: 0, slowest: undefined });
  });
});

describe('the verb `batch run`', () => {
  test('refuses an existing --out file and leaves it unchanged, without --resume or --force', async () => {
    const [file, out] = [join(directory, 'kept.jsonl'), join(directory, 'kept.out')];
    await writeFile(file, toJsonLines([{ id: 'a', script: 'true' }]));
    await writeFile(out, 'precious\n');
    const refused = await runCli(stage, ['batch', 'run', file, '--out', out]);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/--resume .*--force/) });
    expect(await readFile(out, 'utf8')).toBe('precious\n');
    expect((await readdir(directory)).filter((name) => name.startsWith('kept'))).toEqual(['kept.jsonl', 'kept.out']);
    expect((await runCli(stage, ['batch', 'run', file, '--out', out, '--force'])).exitCode).toBe(0);
    expect(await resultsIn(out)).toMatchObject([{ id: 'a', outcome: 'success' }]);
  });

  test.each(['-', '/dev/stdin'])('runs the tasks that come through a pipe: %s', async (file) => {
    const out = join(directory, `pipe-${file.length}.out`);
    const stdin = toJsonLines(['a', 'b'].map((id) => ({ id, script: `echo ${id}` })));
    expect((await runCli(stage, ['batch', 'run', file, '--out', out], { stdin })).exitCode).toBe(0);
    expect((await resultsIn(out)).map(({ id }) => id).sort()).toEqual(['a', 'b']);
  });

  test('names the lines of an id that occurs twice, and runs nothing', async () => {
    const [out, began] = [join(directory, 'twice.out'), host.began.length];
    const stdin = toJsonLines(['a', 'b', 'a'].map((id) => ({ id, script: 'true' })));
    const run = await runCli(stage, ['batch', 'run', '-', '--out', out], { stdin });
    expect(run).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/Lines 1 and 3 of - have .*"a"/) });
    expect(host.began.length).toBe(began);
    await expect(readFile(out)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test.each([
    ['a misspelt field', { id: 'b', script: 'true', timeout: 5 }, 'timeout: unknown field'],
    ['a field of the wrong type', { id: 'b', script: 7 }, 'script: must be a script or a list of scripts'],
    ['a misspelt field of its spec', { id: 'b', script: 'true', spec: { imagee: 'x' } }, 'spec.imagee: unknown field'],
    ['no id', { script: 'true' }, 'id: must be a string'],
  ])('names the line and the field of a task with %s, and runs nothing', async (_what, task, words) => {
    const [file, out, began] = [join(directory, 'wrong.jsonl'), join(directory, 'wrong.out'), host.began.length];
    const lines = `${JSON.stringify({ id: 'a', script: 'true' })}\n\n${JSON.stringify(task)}\n`;
    await writeFile(file, lines);
    for (const [from, stdin] of [
      [file, ''],
      ['-', lines],
    ] as const) {
      const run = await runCli(stage, ['batch', 'run', from, '--out', out], { stdin });
      expect(run).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(`${from}:3 is not valid: ${words}`) });
    }
    expect(host.began.length).toBe(began);
    await expect(readFile(out)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('applies a time limit, retries and repeats to every task', async () => {
    const [out, first] = [join(directory, 'common.out'), join(directory, 'first')];
    const stdin = toJsonLines([
      { id: 'slow', script: 'exec sleep 600' },
      { id: 'flaky', script: `mkdir ${first} && exit 1; echo ok` },
    ]);
    const flags = ['--timeout', '1500ms', '--retries', 'infra=1,command=1', '--repeats', '2'];
    const { exitCode, stderr } = await runCli(stage, ['batch', 'run', '-', '--out', out, ...flags], { stdin });
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('2 passed, 2 did not'),
    });
    const results = (await resultsIn(out)).map(({ id, outcome, attempts }) => ({ id, outcome, attempts }));
    expect(results.map(({ id, outcome }) => `${id} ${outcome}`).sort()).toEqual([
      ...['flaky#1 success', 'flaky#2 success', 'slow#1 timeout', 'slow#2 timeout'],
    ]);
    // One of the two tasks made the directory, failed and was run again.
    expect(results.map(({ attempts }) => attempts).sort()).toEqual([1, 2, 2, 2]);
  });

  test.each([
    [['--retries', 'often'], /Give it as infra=N,command=N/],
    [['--spec', '/etc/hostname'], /\/etc\/hostname is not JSON/],
    [['--name', 'a b'], /name: must be 1 to 64 of/],
    [['--junit', '/none/x'], /\/none\/x, which --junit names, cannot be written/],
    [['--resume', '--force'], /cannot be used with option/],
    [['--only', 'failed'], /--only needs --resume/],
    [['--junit', '/tmp/x', '--out', '/dev/null'], /--junit reads \/dev\/null at the end/],
    [['--report', '/tmp/x', '--out', '/dev/null'], /--report reads \/dev\/null at the end/],
    [['--compare', '/etc/hostname'], /--compare needs --report/],
    [['--report', '/tmp/x', '--compare', '/none'], /\/none, which --compare names, is not a file/],
  ])('refuses %j with exit code 2', async (flags, words) => {
    const stdin = '{"id":"a","script":"true"}';
    const run = await runCli(stage, ['batch', 'run', '-', '--out', join(directory, 'none'), ...flags], { stdin });
    expect(run).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(words) });
    expect((await readdir(directory)).filter((name) => name.startsWith('none'))).toEqual([]);
  });
});
