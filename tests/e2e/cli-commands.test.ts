import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// The verbs exec, run, logs, wait and cancel, as terminals and scripts use them with a real fleet.

let stack: TestFleet;
let cli: FleetCli;
beforeAll(async () => {
  stack = await startFleet({ slots: 40 });
  cli = new FleetCli(stack);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const quiet = { exitCode: 0, stdout: '', stderr: '' };

describe('commands of the command line', () => {
  test('show stdout and stderr byte for byte, and keep the session’s state', async () => {
    expect(await cli.text(['exec', 'bytes', '--', 'cd /tmp; kept=yes'])).toEqual(quiet);
    const all = `python3 -c 'import sys; b = bytes(range(256)); sys.stdout.buffer.write(b * 9); sys.stderr.buffer.write(b[32:127])'`;
    const binary = await cli.run(['exec', 'bytes', '--', all]);
    const bytes = Buffer.from(Array.from({ length: 256 * 9 }, (_, index) => index % 256));
    expect(binary.stdout.equals(bytes)).toBe(true);
    expect(binary.stderr).toBe(bytes.subarray(32, 127).toString('latin1'));
    expect(await cli.text(['exec', 'bytes', '--', 'pwd; printf "$kept"'])).toEqual({ ...quiet, stdout: '/tmp\nyes' });
  });

  test('take one argument as a script, and several as words', async () => {
    const words = ['printf', '[%s]', 'two words', '$HOME', "it's", '', '*', 'a=b', '-n'];
    expect((await cli.text(['exec', 'words', '--', ...words])).stdout).toBe("[two words][$HOME][it's][][*][a=b][-n]");
    expect((await cli.text(['exec', 'words', '--', 'printf "[%s]" $((1 + 1)) | cat'])).stdout).toBe('[2]');
  });

  test.each([
    ['that of the command', ['--', 'exit 7'], 7],
    ['127 for a program that does not exist', ['--', 'no-such-program'], 127],
    ['128 plus the signal that ended its program', ['--', "sh -c 'kill -TERM $$'"], 143],
    ['128 plus the signal that killed the shell', ['--', 'kill -9 $$'], 137],
    ['124 for a timeout', ['--timeout', '300ms', '--', 'sleep 4321'], 124],
    ['125 for a failure of Shellfleet', ['--cwd', '/no/such/dir', '--', 'true'], 125],
    ['2 for an invalid request', ['--cwd', 'relative', '--', 'true'], 2],
  ])('end with this exit code: %s', async (_what, args, exitCode) => {
    const { stderr, ...rest } = await cli.text(['exec', 'codes', ...args]);
    expect(rest).toEqual({ exitCode, stdout: '' });
    if (exitCode !== 7) expect(stderr).toMatch(/^[^\n]+\n([^\n]+\n)?$/);
  });

  test('print one JSON object a line with --json: output as received, then the Result', async () => {
    const { exitCode, stdout, stderr } = await cli.text(['exec', 'json', '--json', '--', 'printf "é\\377"; exit 4']);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const result = lines.pop();
    expect(lines.shift()).toEqual({ type: 'accepted', commandId: result.commandId, sessionId: 'json' });
    expect({ exitCode, stderr }).toEqual({ exitCode: 4, stderr: '' });
    expect(Buffer.concat(lines.map(({ base64 }) => Buffer.from(base64, 'base64'))).toString('hex')).toBe('c3a9ff');
    expect(lines.map(({ type, stream, seq }) => ({ type, stream, seq }))).toEqual(
      lines.map((_line, seq) => ({ type: 'output', stream: 'stdout', seq })),
    );
    expect(result).toEqual(
      expectedResult('json', {
        outcome: 'failure',
        exitCode: 4,
        stdout: 'é\uFFFD',
        totals: { stdoutBytes: 3, stderrBytes: 0, stdoutLines: 1, stderrLines: 0 },
      }),
    );
  });

  test('show output while they run; Ctrl-C cancels them, keeps partial output and exits with 130', async () => {
    const running = cli.start(['exec', 'ctrl-c', '--', 'echo begun; sleep 4321; echo never']);
    await until(
      () => running.output().stdout.toString(),
      (text) => text === 'begun\n',
    );
    running.child.kill('SIGINT');
    const { exitCode, stdout, stderr } = await running.end;
    expect({ exitCode, stdout: stdout.toString() }).toEqual({ exitCode: 130, stdout: 'begun\n' });
    expect(stderr).toMatch(/^shellfleet: Cancelling ctrl-c\.\w{26}; Ctrl-C again leaves at once\.\n/);
    expect((await cli.text(['exec', 'ctrl-c', '--', 'pgrep -r D,R,S,T -x sleep | wc -l'])).stdout).toBe('0\n');
  });

  test('keep running after a hang-up, and wait and logs find them again', async () => {
    const running = cli.start([
      'exec',
      'hang-up',
      '--',
      'echo begun; until [ -e /tmp/go ]; do sleep 0.02; done; echo went; exit 5',
    ]);
    await until(
      () => running.output().stdout.toString(),
      (text) => text === 'begun\n',
    );
    running.child.kill('SIGHUP');
    const { exitCode, stderr } = await running.end;
    const id = /it goes on as (hang-up\.\w{26})\./.exec(stderr)?.[1] ?? '';
    expect({ exitCode, id }).toEqual({ exitCode: 129, id: expect.stringMatching(/^hang-up\./) });
    const following = cli.start(['logs', '-f', id]);
    const waiting = cli.start(['wait', id]);
    await until(
      () => following.output().stdout.toString(),
      (text) => text === 'begun\n',
    );
    // The session is busy until the engine creates the file.
    const info = await (await stack.fleet.session('hang-up')).info();
    expect(info.runningCommandId).toBe(id);
    expect(await cli.text(['cancel', id, '--reason', 'enough'])).toEqual({
      ...quiet,
      stderr: `shellfleet: ${id} ends as a cancellation.\n`,
    });
    expect((await waiting.end).exitCode).toBe(130);
    const followed = await following.end;
    expect({ exitCode: followed.exitCode, stdout: followed.stdout.toString() }).toEqual({
      exitCode: 0,
      stdout: 'begun\n',
    });
    expect((await cli.text(['cancel', id])).stderr).toBe(`shellfleet: ${id} had already ended.\n`);
  });

  test('show late output of background processes, in logs of a command and of a session', async () => {
    const script = 'echo own; { until [ -e /tmp/go ]; do sleep 0.02; done; echo late; } &';
    const { stdout } = await cli.text(['exec', 'background', '-d', '--', script]);
    const id = stdout.trim();
    expect((await cli.text(['wait', id])).exitCode).toBe(0);
    const following = cli.start(['logs', '-f', 'background']);
    await until(
      () => following.output().stdout.toString(),
      (text) => text === 'own\n',
    );
    await cli.text(['exec', 'background', '--', 'touch /tmp/go']);
    await until(
      () => following.output().stdout.toString(),
      (text) => text === 'own\nlate\n',
    );
    expect(await cli.text(['logs', id])).toEqual({ exitCode: 0, stdout: 'own\nlate\n', stderr: '' });
    await cli.text(['close', 'background']);
    expect((await following.end).stdout.toString()).toBe('own\nlate\n');
  });

  test('can be waited for and read by id when detached, also from a given chunk', async () => {
    const { stdout } = await cli.text(['exec', 'later', '-d', '--', 'echo one; echo err >&2; exit 3']);
    const id = stdout.trim();
    expect((await cli.text(['wait', id])).exitCode).toBe(3);
    expect(await cli.text(['logs', id])).toEqual({ exitCode: 0, stdout: 'one\n', stderr: 'err\n' });
    expect((await cli.text(['logs', 'later'])).stdout).toBe('one\n');
    const chunks = (await cli.text(['logs', '--json', id])).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const rest = await cli.text(['logs', id, '--since', chunks[0]?.id]);
    expect(rest.stdout + rest.stderr).toBe(
      chunks
        .slice(1)
        .map(({ text }) => text)
        .join(''),
    );
    const { stdout: waited } = await cli.text(['wait', '--json', id]);
    expect(JSON.parse(waited)).toMatchObject({ commandId: id, outcome: 'failure', exitCode: 3, stdout: 'one\n' });
  });

  test('pass --stdin, --env and --cwd to the command, from flags and from variables', async () => {
    const script = 'pwd; echo "$A|$B"; cat';
    const args = ['exec', 'given', '--stdin', '-e', 'A=one', '-e', 'B=a=b c', '--cwd', '/usr', '--', script];
    expect(await cli.text(args, { stdin: 'from stdin' })).toEqual({ ...quiet, stdout: '/usr\none|a=b c\nfrom stdin' });
    const env = { SHELLFLEET_ENV: 'A=variable', SHELLFLEET_CWD: '/tmp', SHELLFLEET_TIMEOUT: '10s' };
    expect(await cli.text(['exec', 'given', '--', script], { env })).toEqual({ ...quiet, stdout: '/tmp\nvariable|\n' });
  });

  test('use a fresh session for each run, and close it', async () => {
    expect(await cli.text(['run', '--', 'n=$((n + 1)); echo $n; hostname >&2'])).toMatchObject({
      exitCode: 0,
      stdout: '1\n',
    });
    expect((await cli.text(['run', '--', 'n=$((n + 1)); echo $n; exit 9'])).exitCode).toBe(9);
    const sessions = (await cli.text(['ps', '--all', '--json'])).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    for (const { id, state } of sessions.filter((info) => info.id.startsWith('run-')))
      expect({ id, state }).toEqual({ id, state: 'closed' });
  });

  test('pass secrets of the environment without showing them, and mask personal data as asked', async () => {
    const env = { SHELLFLEET_REDACT: 'email:mask', DB_PASSWORD: 'correct-horse-battery' };
    const script = 'echo "${#DB_PASSWORD} $DB_PASSWORD alice@example.com"; exit 3';
    expect(await cli.text(['exec', 'secretive', '--secret', 'DB_PASSWORD', '--', script], { env })).toEqual({
      exitCode: 3,
      stdout: '21 [REDACTED_SECRET] alice@****.com\n',
      stderr: '',
    });
    const missing = await cli.text(['exec', 'secretive', '--secret', 'NOT_SET', '--', 'true']);
    expect([missing.exitCode, missing.stderr]).toEqual([2, expect.stringContaining("'NOT_SET' is invalid")]);
  });

  test('report a missing image in one line, with exit code 125', async () => {
    const { exitCode, stdout, stderr } = await cli.text([
      'exec',
      'no-image',
      '--image',
      'localhost:1/none:v1',
      '--',
      'true',
    ]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 125, stdout: '' });
    expect(stderr).toMatch(/^shellfleet: The image localhost:1\/none:v1 [^\n]*\(IMAGE_UNAVAILABLE\)\n$/);
    // exec closes the session again, because every later command would fail with this spec.
    expect((await cli.text(['exec', 'no-image', '--', 'echo works'])).stdout).toBe('works\n');
  });

  test('report a startup command that fails, and let the session be opened otherwise', async () => {
    const failed = await cli.text(['exec', 'bad-start', '--startup', 'exit 3', '--', 'true']);
    expect([failed.exitCode, failed.stderr]).toEqual([125, expect.stringContaining('SESSION_START_FAILED')]);
    expect((await cli.text(['exec', 'bad-start', '--', 'echo works'])).stdout).toBe('works\n');
  });

  test('report a limit of memory on stderr, and how to set it', async () => {
    const { exitCode, stderr } = await cli.text(['run', '--memory', '64m', '--', 'exec tail /dev/zero']);
    expect(exitCode).toBe(137);
    expect(stderr).toMatch(
      /^shellfleet: The kernel killed a process of run-\S+, because its sandbox reached its limit of/,
    );
    expect(stderr).toContain(' --memory sets that of a session when it is opened.\n');
  });

  test('report lost state of the shell on stderr, and exit with the command’s code', async () => {
    await cli.text(['exec', 'lost', '--', 'kept=yes']);
    const { exitCode, stderr } = await cli.text(['exec', 'lost', '--', 'kill -9 $$']);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 137,
      stderr: 'shellfleet: The state of the shell was lost: the shell was killed by a signal.\n',
    });
    expect(await cli.text(['exec', 'lost', '--', 'echo "[$kept]"'])).toEqual({ ...quiet, stdout: '[]\n' });
  });
});
describe('a full disk', () => {
  const SAID =
    'shellfleet: stdout cannot be written, so what it has is not whole: ENOSPC: no space left on device, write.\n';
  const full = { stdoutPath: '/dev/full' };

  test.each([
    ['exec', 'full', '--', 'seq 1 100000'],
    ['exec', 'full', '--json', '--', 'exit 3'],
    ['exec', 'full', '--detach', '--', 'true'],
    ['run', '--', 'seq 1 10'],
    ['ps', '--all'],
    ['ps', '--all', '--json'],
    ['logs', 'has-output'],
    ['logs', 'has-output', '--json'],
    ['logs', 'COMMAND'],
    ['wait', 'COMMAND', '--json'],
    ['cancel', 'COMMAND', '--json'],
    ['cp', 'has-output:/etc/passwd', '-'],
    ['queue'],
    ['hosts', 'ls'],
    ['approvals', 'ls'],
    ['tools', 'ls'],
    ['completion', 'bash'],
    ['rules', 'check', 'true', '--json'],
    ['logs', 'no-such-session', '--json'],
    ['--version'],
    ['--help'],
    ['exec', '--help'],
  ])('ends `%s %s %s`, which writes to it, with one line and exit code 125', async (...words) => {
    const { commandId } = await (await stack.fleet.session('has-output')).run('echo there is some');
    await expectSaid(words.map((word) => (word === 'COMMAND' ? commandId : word)));
  });

  test('ends commands that read the audit in the same way, also when records are missing', async () => {
    await (await stack.fleet.session('has-output')).run('true');
    const directory = ['--state-dir', stack.stateDirectory];
    const heads = await until(
      async () => (await cli.text(['audit', 'heads', ...directory])).stdout,
      (shown) => shown !== '',
    );
    const kept = join(stack.stateDirectory, 'kept-heads');
    await writeFile(kept, heads.replaceAll(/"host":"[^"]+"/g, '"host":"gone"'));
    const verify = ['audit', 'verify', ...directory, '--heads', kept];
    expect(await cli.text(verify)).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('host gone') });
    for (const args of [
      ['audit', 'heads', ...directory],
      ['audit', 'export', ...directory],
      verify,
      [...verify, '--json'],
    ])
      await expectSaid(args);
  });

  async function expectSaid(args: readonly string[]) {
    const { exitCode, stderr } = await cli.text(args, full);
    // Some commands print further messages for a person on stderr.
    const lines = stderr.trimEnd().split('\n');
    expect({ args, exitCode, stderr }).toMatchObject({ args, exitCode: 125, stderr: expect.stringContaining(SAID) });
    expect(lines.filter((line) => !/^shellfleet: (?!stdout)/.test(line))).toEqual([SAID.trimEnd()]);
  }

  test('ends batch results and copies with the name of the file and exit code 125', async () => {
    const tasks = '{"id":"a","script":"true"}\n';
    expect(await cli.text(['batch', 'run', '-', '--out', '/dev/full'], { stdin: tasks })).toEqual({
      exitCode: 125,
      stdout: '',
      stderr: expect.stringMatching(
        /^shellfleet: \/dev\/full on this machine cannot be used: ENOSPC: no space left on device, write\.[^\n]*\(FILE_DENIED\)\n$/,
      ),
    });
    expect(await cli.text(['cp', 'has-output:/etc/passwd', '/dev/full'])).toEqual({
      exitCode: 125,
      stdout: '',
      stderr: expect.stringMatching(
        /^shellfleet: \/dev\/full on this machine: ENOSPC: no space left on device, write\.[^\n]*\(FILE_DENIED\)\n$/,
      ),
    });
  });
});
