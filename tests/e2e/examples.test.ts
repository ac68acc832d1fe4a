import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let testFleet: TestFleet;
beforeAll(async () => {
  testFleet = await startFleet({ slots: 10 });
});
afterAll(() => testFleet?.[Symbol.asyncDispose]());

async function runExample(name: string, args: string[] = []) {
  const { redisUrl, namespace, sealKey } = testFleet;
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  const env = {
    ...{ PATH, HOME, NODE_COMPILE_CACHE },
    ...{ SHELLFLEET_REDIS_URL: redisUrl, SHELLFLEET_NAMESPACE: namespace, SHELLFLEET_SEAL_KEY: sealKey },
  };
  const program = join(checkoutRoot, 'examples', name, 'src/main.ts');
  const node = ['--conditions=@shellfleet/source', '--no-warnings', program, ...args];
  return promisify(execFile)(process.execPath, node, { env }).then(
    ({ stdout }) => ({ exitCode: 0, stdout, stderr: '' }),
    ({ code, stdout, stderr }) => ({ exitCode: code as number, stdout: stdout as string, stderr: stderr as string }),
  );
}

/** Returns each command of a session from the audit, with the answer to its question and its outcome. */
const storyOf = (session: string) => async () => {
  const { stdout } = await new FleetCli(testFleet).text(['audit', 'export', '--state-dir', testFleet.stateDirectory]);
  const records: Record<string, string>[] = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  const own = records.filter((record) => record.session === session);
  return own.flatMap(({ type, kind, entry, script }) => {
    if (type !== 'submission' || kind !== 'command') return [];
    const [held, end] = [{ decision: 'hold' }, { type: 'end' }].map((like) =>
      own.find((record) => record.entry === entry && Object.entries(like).every(([field, is]) => record[field] === is)),
    );
    const answer = records.find((record) => record.type === 'answer' && record.question === held?.question);
    const answered = answer && `${answer.decision} (${answer.scope ?? answer.reason})`;
    return [[script, answered ?? 'not asked', end?.outcome]];
  });
};

describe('the examples', () => {
  test.concurrent('let an agent ask its server, read late output and fix the server', async ({ expect }) => {
    const { exitCode, stdout, stderr } = await runExample('agent-loop');
    expect(stderr).toBe('');
    expect(stdout).toMatch(/2 \+ 3 = 23[\s\S]*gives string 23[\s\S]*2 \+ 3 = 5[\s\S]*It adds\./);
    expect(exitCode).toBe(0);
  });

  test.concurrent('finish a batch with a second driver when the first is killed, each step once', async ({
    expect,
  }) => {
    const { exitCode, stdout, stderr } = await runExample('batch-resume', ['--tasks', '12']);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/The driver was killed when \d+ of 12 tasks had ended\./);
    expect(stdout).toContain('12 tasks have a result, in 12 lines; in 12 each step ran once.');
    expect(exitCode).toBe(0);
  });

  test.concurrent('build and test programs in a batch, with the scores that they must have', async ({ expect }) => {
    const { exitCode, stdout, stderr } = await runExample('batch-programs', ['--tasks', '8']);
    expect(stderr).toBe('');
    // Two of these programs do not build, and one answers wrongly.
    expect(stdout).toMatch(/\n5 of 8 programs passed, the mean score is 0\.\d+; 6 were built\.\n$/);
    expect(exitCode).toBe(0);
  });

  test.concurrent('grade patches of a model by hidden tests, and the command line continues', async ({ expect }) => {
    const directory = await mkdtemp(join(tmpdir(), 'batch-patches-'));
    const { exitCode, stdout, stderr } = await runExample('batch-patches', ['--keep', directory, '--timeout', '12']);
    expect(stderr).toBe('');
    const table = stdout.split('\n').slice(-6, -1);
    expect(table.map((row) => row.trim().split(/ {2,}/))).toEqual([
      ['resolved', 'failed', 'did not apply', 'timed out', 'pass@1', 'pass@3'],
      ['pages', '1', '1', '0', '1', '0.33', '1.00'],
      ['clock', '2', '1', '0', '0', '0.67', '1.00'],
      ['slug', '1', '1', '1', '0', '0.33', '1.00'],
      ['all', '4', '3', '1', '1', '0.44', '1.00'],
    ]);
    expect(exitCode).toBe(0);
    const [tasks, out, junit] = ['tasks.jsonl', 'results.jsonl', 'junit.xml'].map((name) => join(directory, name));
    const words = ['batch', 'run', `${tasks}`, '--out', `${out}`, '--repeats', '3', '--resume', '--junit', `${junit}`];
    const resumed = await new FleetCli(testFleet).text(words);
    expect(resumed).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('9 had ended before') });
    expect(await readFile(`${junit}`, 'utf8')).toContain(' tests="9" failures="5" errors="0" ');
    expect(await readFile(join(directory, 'results/slug/3.diff'), 'utf8')).toContain('+    return "-".join');
    await rm(directory, { recursive: true });
  });

  test.concurrent('give every reader of the back end each line once, despite reconnects', async ({ expect }) => {
    const { exitCode, stdout, stderr } = await runExample('web-back-end', ['--lines', '20']);
    expect(stderr).toBe('');
    expect(stdout.match(/: every line once, and the end: success$/gm)).toHaveLength(3);
    expect(exitCode).toBe(0);
  });

  test.concurrent('let a person approve and deny an agent’s commands, once each, with an audit', async ({ expect }) => {
    const { approvals } = testFleet.fleet;
    const asked: string[] = [];
    const answering = (async () => {
      for await (const { id, state, script } of approvals.watch()) {
        if (state !== 'pending' || asked.includes(script)) continue;
        asked.push(script);
        if (script.includes('notes.txt')) await approvals.deny(id, 'the notes are needed');
        else await approvals.approve(id, { scope: script.startsWith('node --test') ? 'session' : 'command' });
      }
    })().catch(() => {}); // the watch rejects when the fleet closes
    const { exitCode, stdout, stderr } = await runExample('agent-with-approvals');
    void answering;
    expect(stderr).toBe('');
    expect(stdout.match(/\(waits for a person\)/g)).toHaveLength(4);
    expect(stdout).toContain('the notes are needed');
    expect(asked).toEqual([
      'node --test /workspace/repo/sum.test.mjs',
      expect.stringContaining('sum.mjs'),
      'rm -rf /workspace/repo/build /workspace/repo/notes.txt',
      'rm -rf /workspace/repo/build',
    ]);
    expect(exitCode).toBe(0);
    const test = 'node --test /workspace/repo/sum.test.mjs';
    // The audit has the end of a command within a second.
    expect(await until(storyOf('agent-with-approvals'), (story) => story.at(-1)?.at(-1) === 'success')).toEqual([
      ['ls /workspace/repo', 'not asked', 'success'],
      [test, 'approve (session)', 'failure'],
      ['cat /workspace/repo/sum.mjs', 'not asked', 'success'],
      [expect.stringContaining('sum.mjs'), 'approve (command)', 'success'],
      [test, 'not asked', 'success'],
      ['rm -rf /workspace/repo/build /workspace/repo/notes.txt', 'deny (the notes are needed)', 'denial'],
      ['rm -rf /workspace/repo/build', 'approve (command)', 'success'],
    ]);
  });
});
