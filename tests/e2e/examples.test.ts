import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

let testFleet: TestFleet;
beforeAll(async () => {
  testFleet = await startFleet({ slots: 8 });
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

test.concurrent('the agent of the example asks its server, reads what it printed later, and mends it', async ({
  expect,
}) => {
  const { exitCode, stdout, stderr } = await runExample('agent-loop');
  expect(stderr).toBe('');
  expect(stdout).toMatch(/2 \+ 3 = 23[\s\S]*gives string 23[\s\S]*2 \+ 3 = 5[\s\S]*It adds\./);
  expect(exitCode).toBe(0);
});

test.concurrent('a batch whose driver is killed in the middle is ended by a second one, each step run once', async ({
  expect,
}) => {
  const { exitCode, stdout, stderr } = await runExample('batch-resume', ['--tasks', '12']);
  expect(stderr).toBe('');
  expect(stdout).toMatch(/The driver was killed when \d+ of 12 tasks had ended\./);
  expect(stdout).toContain('12 tasks have a result, in 12 lines; in 12 each step ran once.');
  expect(exitCode).toBe(0);
});

test.concurrent('every reader of the back end gets every line once, however often it leaves', async ({ expect }) => {
  const { exitCode, stdout, stderr } = await runExample('web-back-end', ['--lines', '20']);
  expect(stderr).toBe('');
  expect(stdout.match(/: every line once, and the end: success$/gm)).toHaveLength(3);
  expect(exitCode).toBe(0);
});

test.concurrent('an agent’s commands wait for a person, who approves, denies, and is not asked the same twice', async ({
  expect,
}) => {
  const { approvals } = testFleet.fleet;
  const asked: string[] = [];
  const answering = (async () => {
    for await (const { id, state, script } of approvals.watch()) {
      if (state !== 'pending' || asked.includes(script)) continue;
      asked.push(script);
      if (script.includes('notes.txt')) await approvals.deny(id, 'the notes are needed');
      else await approvals.approve(id, { scope: script.startsWith('node --test') ? 'session' : 'command' });
    }
  })().catch(() => {}); // ends with the fleet
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
});
