import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { runCli, startCli } from '../support/run-cli.ts';
import { until, untilFound } from '../support/until.ts';

let stage: ClientStage;
let directory: string;
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost();
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-cli-'));
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

describe('the command line', () => {
  test('passes on the bytes of stdout and stderr and the exit code', async () => {
    const run = await runCli(stage, ['exec', 's', '--', "printf 'a\\0\\377\\033[31m'; printf 'e\\200' >&2; exit 7"]);
    expect(run.exitCode).toBe(7);
    expect(run.stdout.toString('latin1')).toBe('a\0\u00ff\u001b[31m');
    expect(run.stderr).toBe('e\ufffd');
  });

  test('shows output while the command runs', async () => {
    const { child, output, end } = startCli(stage, ['exec', 'live', '--', 'echo first; exec sleep 60']);
    await untilFound('the first line is there', async () => output().stdout.toString() === 'first\n');
    child.kill('SIGINT');
    expect(await end).toMatchObject({ exitCode: 130, stderr: expect.stringMatching(/^shellfleet: Cancelling live\./) });
  });

  test('shows the Result of the first command again for the same --idempotency-key', async () => {
    for (const verb of [['exec', 'keyed'], ['run']]) {
      const args = [...verb, '--idempotency-key', 'k', '--', 'date +%N; exit 3'];
      const [first, again] = [await runCli(stage, args), await runCli(stage, args)];
      expect([again.exitCode, again.stdout.toString()]).toEqual([3, first.stdout.toString()]);
    }
  });

  test('quotes several words so that the shell receives them unchanged', async () => {
    const words = ['a b', "c'd", '$HOME', '', '*', 'x=1', '-n'];
    const run = await runCli(stage, ['exec', 's', '--', 'printf', '<%s>', ...words]);
    expect(run.stdout.toString()).toBe(words.map((word) => `<${word}>`).join(''));
  });

  test('prints one object per line with --json: the id, the output and the Result', async () => {
    const run = await runCli(stage, ['exec', 's', '--json', '--', 'echo hi; echo no >&2; exit 3']);
    const lines = run.stdout
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(
      lines
        .slice(0, -1)
        .map(({ type, stream, text }) => [type, stream, text])
        .sort(),
    ).toEqual([
      ['accepted', undefined, undefined],
      ['output', 'stderr', 'no\n'],
      ['output', 'stdout', 'hi\n'],
    ]);
    expect(lines.at(-1)).toMatchObject({
      outcome: 'failure',
      exitCode: 3,
      stdout: 'hi\n',
      stderr: 'no\n',
      sessionId: 's',
    });
    expect([run.exitCode, run.stderr]).toEqual([3, '']);
  });

  test('reports a timeout and exits with 124', async () => {
    const run = await runCli(stage, ['exec', 's', '--timeout', '200ms', '--', 'sleep', '60']);
    expect(run).toMatchObject({
      exitCode: 124,
      stderr: expect.stringMatching(/^shellfleet: .* was stopped at its time limit/),
    });
  });

  test('passes --stdin, --env and SHELLFLEET_ variables to the command', async () => {
    const args = ['exec', 's', '--stdin', '-e', 'A=one two', '-e', 'B=x=y', '--', 'cat; echo "$A|$B"'];
    expect((await runCli(stage, args, { stdin: 'in\n' })).stdout.toString()).toBe('in\none two|x=y\n');
    const timed = await runCli(stage, ['exec', 's', '--', 'sleep', '60'], { env: { SHELLFLEET_TIMEOUT: '200ms' } });
    expect(timed.exitCode).toBe(124);
    const large = await runCli(stage, ['exec', 's', '--stdin', '--', 'wc -c'], { stdin: new Uint8Array(5_000_000) });
    expect(large).toMatchObject({ exitCode: 0, stdout: Buffer.from('5000000\n') });
  });

  test('finds a detached command again for logs, wait and cancel', async () => {
    const detached = await runCli(stage, ['exec', 's', '--detach', '--', 'echo one; sleep 0.2; echo two; exit 5']);
    const id = detached.stdout.toString().trim();
    expect(id).toMatch(/^s\.[0-9A-Z]{26}$/);
    const [follow, wait] = await Promise.all([runCli(stage, ['logs', '-f', id]), runCli(stage, ['wait', id])]);
    expect([follow.stdout.toString(), follow.exitCode, wait.exitCode]).toEqual(['one\ntwo\n', 0, 5]);
    const lines = (await runCli(stage, ['logs', '--json', id])).stdout.toString().trimEnd().split('\n');
    const since = await runCli(stage, ['logs', '--since', JSON.parse(lines[0] ?? '').id, id]);
    expect(since.stdout.toString()).toBe('two\n');
    const cancel = await runCli(stage, ['cancel', '--json', id]);
    expect(JSON.parse(cancel.stdout.toString())).toEqual({ commandId: id, cancelled: false });
  });

  test('reports the reason of a cancellation in the Result, the event and on stderr', async () => {
    const { output, end } = startCli(stage, ['exec', 'stopped', '--json', '--', 'sleep 60']);
    await untilFound('it runs', async () =>
      (await runCli(stage, ['ps', '--json'])).stdout.toString().includes('"busy"'),
    );
    const id: string = JSON.parse(output().stdout.toString().split('\n')[0] ?? '').commandId;
    const [cancel, wait] = await Promise.all([
      runCli(stage, ['cancel', '--reason', 'the build is obsolete', id]),
      runCli(stage, ['wait', id]),
    ]);
    expect(cancel.stderr).toBe(`shellfleet: ${id} ends as a cancellation.\n`);
    expect([wait.exitCode, wait.stderr]).toEqual([130, `shellfleet: ${id} was cancelled: the build is obsolete.\n`]);
    const result = JSON.parse((await end).stdout.toString().trimEnd().split('\n').at(-1) ?? '');
    expect(result).toMatchObject({
      outcome: 'cancellation',
      reason: 'cancelled',
      cancelReason: 'the build is obsolete',
    });
    const session = await (await stage.connect()).attach('stopped');
    for await (const { type, data } of session?.events({ after: '0-0' }) ?? []) {
      if (type !== 'command.completed') continue;
      expect(data).toMatchObject({ commandId: id, cancelReason: 'the build is obsolete' });
      break;
    }
  });

  test('leaves the command running at SIGHUP, and names its id', async () => {
    const { child, output, end } = startCli(stage, ['exec', 'hung', '--', 'echo on; sleep 0.5; echo done']);
    await untilFound('it runs', async () => output().stdout.length > 0);
    child.kill('SIGHUP');
    const left = await end;
    expect(left.exitCode).toBe(129);
    const id = /it goes on as (hung\.\w+)\./.exec(left.stderr)?.[1] ?? '';
    expect((await runCli(stage, ['logs', '-f', id])).stdout.toString()).toBe('on\ndone\n');
  });

  test('reports at SIGHUP that a command whose stdin is incomplete will be stopped', async () => {
    const { child, output, end } = startCli(stage, ['exec', 'fed', '--stdin', '--json', '--', 'echo on; cat']);
    await untilFound('it runs', async () => output().stdout.toString().includes('on\\n'));
    child.kill('SIGHUP');
    const { exitCode, stdout, stderr } = await end;
    const [{ commandId }] = stdout
      .toString()
      .split('\n')
      .slice(0, 1)
      .map((line) => JSON.parse(line));
    expect({ exitCode, stderr }).toEqual({
      exitCode: 129,
      stderr: `shellfleet: Leaving before its stdin was sent to the end, so ${commandId} is stopped within a few seconds (STDIN_INCOMPLETE).\n`,
    });
  });

  test.each([
    ['of wrong usage', ['exec', 's', '--bogus', '--json', '--', 'true'], 2, 'COMMAND_INVALID', false],
    ['of an invalid session id', ['exec', 'a:b', '--json', '--', 'true'], 2, 'SESSION_SPEC_INVALID', false],
    [
      'of a Redis that does not answer',
      ['--redis-url', 'redis://127.0.0.1:1', 'ps', '--json'],
      125,
      'QUEUE_UNAVAILABLE',
      true,
    ],
  ])('prints an error %s as one object on stdout with --json', async (_what, args, exitCode, code, retryable) => {
    const run = await runCli(stage, args);
    const line = JSON.parse(run.stdout.toString());
    expect([run.exitCode, line]).toEqual([exitCode, { type: 'error', code, message: expect.any(String), retryable }]);
    expect(run.stderr).not.toBe('');
  });

  test('exits immediately at a second Ctrl-C', async () => {
    await using stage = await setClientStage();
    const { child, output, end } = startCli(stage, ['exec', 'paused', '--', 'true']);
    await untilFound('it is submitted', async () =>
      (await stage.keys()).some((key) => key.includes(':paused}:record:')),
    );
    // Redis is away between the two signals, so the cancellation cannot end the client.
    stage.own.freeze();
    child.kill('SIGINT');
    await untilFound('it was heard', async () => output().stderr.includes('Cancelling'));
    child.kill('SIGINT');
    const { exitCode } = await end;
    stage.own.thaw();
    expect(exitCode).toBe(130);
  });

  test('ends without an error message when the reader of stdout goes away', async () => {
    const { child, end } = startCli(stage, ['exec', 'piped', '--', 'yes']);
    child.stdout?.once('data', () => child.stdout?.destroy());
    const { exitCode, stderr } = await end;
    expect([exitCode, stderr]).toEqual([130, '']);
  });

  test('runs a one-shot command in its own session, which it then closes', async () => {
    const run = await runCli(stage, ['run', '--json', '--', 'echo one; exit 4']);
    expect(run.exitCode).toBe(4);
    const { sessionId } = JSON.parse(run.stdout.toString().trimEnd().split('\n').at(-1) ?? '');
    const closed = await runCli(stage, ['ps', '--json', '--state', 'closed']);
    expect(closed.stdout.toString()).toContain(sessionId);
  });

  test('copies the same bytes in both directions with `cp`', async () => {
    const bytes = new Uint8Array(600_000).map((_, index) => index * 7);
    await writeFile(join(directory, 'in'), bytes);
    await runCli(stage, ['exec', 'files', '--', 'true']);
    expect((await runCli(stage, ['cp', join(directory, 'in'), 'files:/workspace/'])).exitCode).toBe(0);
    expect((await runCli(stage, ['cp', 'files:/workspace/in', join(directory, 'out')])).exitCode).toBe(0);
    expect((await readFile(join(directory, 'out'))).equals(Buffer.from(bytes))).toBe(true);
    expect(await runCli(stage, ['cp', 'files:/workspace/none', join(directory, 'none')])).toMatchObject({
      exitCode: 125,
      stderr: expect.stringMatching(/^shellfleet: \/workspace\/none does not exist\..* \(FILE_NOT_FOUND\)\n$/),
    });
  });

  test('refuses a misspelt session id for `cp` in both directions', async () => {
    await writeFile(join(directory, 'local'), 'text');
    for (const args of [
      ['cp', join(directory, 'local'), 'misspelt:/workspace/'],
      ['cp', 'misspelt:/workspace/local', directory],
    ]) {
      expect(await runCli(stage, args)).toMatchObject({
        exitCode: 125,
        stderr: expect.stringMatching(
          /^shellfleet: There is no open session misspelt\. .*`shellfleet exec misspelt -- true` opens it\. \(SESSION_NOT_FOUND\)\n$/,
        ),
      });
    }
    expect((await runCli(stage, ['ps', '--all'])).stdout.toString()).not.toContain('misspelt');
  });

  test('shows sessions, hosts and the queue, and restarts and closes a session', async () => {
    await runCli(stage, ['exec', 'shown', '--', 'true']);
    expect((await runCli(stage, ['ps'])).stdout.toString()).toMatch(/^shown +ready +host-1 +0 +- /m);
    expect((await runCli(stage, ['hosts', 'ls'])).stdout.toString()).toMatch(/^host-1 +up +\d+\/100 +docker/m);
    expect((await runCli(stage, ['queue'])).exitCode).toBe(0);
    expect((await runCli(stage, ['restart', 'shown'])).exitCode).toBe(0);
    expect((await runCli(stage, ['close', 'shown'])).stderr).toBe('shellfleet: shown is closed.\n');
    expect((await runCli(stage, ['close', 'shown'])).stderr).toBe('shellfleet: shown was not open.\n');
    expect((await runCli(stage, ['restart', 'never'])).exitCode).toBe(125);
  });

  test('warns at `close` that the sandbox on an unreachable host may still run', async () => {
    await using own = await setClientStage();
    const host = await own.startHost({ id: 'away' });
    await runCli(own, ['exec', 'there', '--', 'true']);
    await host.leave();
    const fleet = await own.connect();
    await until(
      async () => (await (await fleet.attach('there'))?.info())?.state,
      (state) => state === 'unreachable',
    );
    expect((await runCli(own, ['close', 'there'])).stderr).toBe(
      'shellfleet: there is closed. Its host away is unreachable: if the host still runs, so do the sandbox and what runs in it. The host removes them when it reaches the fleet again.\n',
    );
  });

  test('writes one line per task of a batch, and resumes after those that ended', async () => {
    const file = join(directory, 'tasks.jsonl');
    const out = join(directory, 'results.jsonl');
    const tasks = [
      { id: 'a', script: 'echo a' },
      { id: 'b', script: ['echo b', 'exit 3'] },
    ];
    await writeFile(file, tasks.map((task) => JSON.stringify(task)).join('\n'));
    const first = await runCli(stage, ['batch', 'run', file, '--out', out, '--concurrency', '2']);
    expect([first.exitCode, first.stderr]).toEqual([
      1,
      expect.stringMatching(/1 passed, 1 did not, 0 had ended before/),
    ]);
    const written = (await readFile(out, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(written.map(({ id, outcome }) => `${id} ${outcome}`).sort()).toEqual(['a success', 'b failure']);
    await writeFile(file, JSON.stringify({ id: 'c', script: 'echo c' }), { flag: 'a' });
    expect((await runCli(stage, ['batch', 'run', file, '--out', out, '--resume'])).exitCode).toBe(2);
    await writeFile(file, [...tasks, { id: 'c', script: 'echo c' }].map((task) => JSON.stringify(task)).join('\n'));
    const resumed = await runCli(stage, ['batch', 'run', file, '--out', out, '--resume']);
    expect([resumed.exitCode, resumed.stderr]).toEqual([
      0,
      expect.stringMatching(/1 passed, 0 did not, 2 had ended before/),
    ]);
  });

  test.each([
    [['nope'], /unknown command 'nope'/],
    [['exec'], /missing required argument 'session'/],
    [['exec', 's'], /missing required argument 'script'/],
    [['exec', 's', '--bogus', '--', 'true'], /unknown option '--bogus'/],
    [['exec', 's', '--timeout', 'soon', '--', 'true'], /Give a time such as/],
    [['exec', 's', '-e', 'novalue', '--', 'true'], /Give it as NAME=value/],
    [['exec', 'a:b', '--', 'true'], /id: may only hold/],
    [['exec', 's\u001b[2J', '--', 'true'], /id: may only hold/],
    [['exec', 's', '--', ' '], /script: must not be empty/],
    [['exec', 'new', '--image', 'Bad Image', '--', 'true'], /spec\.image: is not an image name/],
    [['exec', 'new', '--redact', 'foo', '--', 'true'], /Give TYPE:STRATEGY, such as email:mask\./],
    [['up', '--policies', 'foo'], /'--policies <names>' argument 'foo' is invalid\. Give one or more of docker, host/],
    [['worker', '--policies', 'docker,foo'], /Give one or more of docker, host/],
    [['cp', 'a', 'b'], /One of the two must be in a session/],
    [['batch', 'run', '/etc/hostname', '--out', '/nonexistent/out'], /\/etc\/hostname:1 is not a task/],
    [['--redis-url', 'http://x', 'ps'], /The Redis URL is not of the form/],
    [['--redis-url', 'redis://127.0.0.1:99999', 'ps'], /The Redis URL is not of the form/],
    [['wait', 'nothing'], /is not a command id/],
    [['logs', '--since', '$', 's'], /after: must be the id of a chunk/],
  ])('reports wrong usage in one line and exits with 2: %j', async (args, words) => {
    const run = await runCli(stage, args);
    expect(run.stderr).toMatch(words);
    expect(run.stderr.trimEnd()).not.toMatch(/\p{Cc}/u);
    expect([run.exitCode, run.stdout.toString()]).toEqual([2, '']);
  });

  test('names the next step when the port of MCP is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const run = await runCli(stage, ['mcp', '--http', '--port', String(port)]).finally(() => server.close());
    expect(run).toMatchObject({
      exitCode: 2,
      stderr: `shellfleet: Port ${port} of 127.0.0.1 cannot be listened on (EADDRINUSE). Name another with --port, or 0 for a free one. (COMMAND_INVALID)\n`,
    });
  });

  test('names the verb that lists tools when a tool does not exist', async () => {
    expect(await runCli(stage, ['tools', 'call', 'nosuch'])).toMatchObject({
      exitCode: 2,
      stderr:
        'shellfleet: unknown tool: nosuch. `shellfleet tools ls` lists the tools that live hosts offer. (unknown-tool)\n',
    });
  });

  test('lists hosts with a dash in each empty cell', async () => {
    const [, row = ''] = (await runCli(stage, ['hosts', 'ls'])).stdout.toString().split('\n');
    expect(row).toMatch(/ - +-$/);
  });

  test('counts the outputs of a batch that are missing', async () => {
    const out = join(directory, 'missing.jsonl');
    const lines = JSON.stringify({ id: 'a', script: 'true', outputs: { '/none': join(directory, 'none') } });
    expect(await runCli(stage, ['batch', 'run', '-', '--out', out], { stdin: lines })).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(
        '0 had ended before. 1 output is missing; `outputs` of the results says why. Results',
      ),
    });
  });

  test.each([
    [['batch', 'run', '/none/tasks', '--out', '/none/out']],
    [['batch', 'run', '/etc/hostname/tasks', '--out', '/none/out']],
    [['cp', '/none/file', 's:/x']],
    [['config', 'check', '/none/file']],
    [['rules', 'check', '--file', '/none/file']],
    [['tools', 'call', 'add', '--args', '@/none/file']],
  ])('exits with 2 for a path of this machine that does not exist: %j', async (args) => {
    const { exitCode, stderr } = await runCli(stage, args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(/(none|hostname)\/.*EN/) });
  });

  test('explains how to start a fleet, and shows the stack with SHELLFLEET_DEBUG', async () => {
    const run = await runCli(stage, ['ps'], { env: { SHELLFLEET_REDIS_URL: '' } });
    expect(run).toMatchObject({
      exitCode: 125,
      stderr: expect.stringMatching(/^shellfleet: No fleet was found.*npm start.*\n$/),
    });
    const debugged = await runCli(stage, ['ps'], { env: { SHELLFLEET_REDIS_URL: '', SHELLFLEET_DEBUG: '1' } });
    expect(debugged.stderr).toMatch(/\n {4}at /);
  });
});
