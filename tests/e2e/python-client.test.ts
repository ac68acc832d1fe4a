import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { isRoot } from '../support/host-leftovers.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// The tests of the Python client, by Python's own runner, against a fleet and its API.

const client = join(checkoutRoot, 'clients/python');
const serve = [
  ...[process.execPath, '--conditions=@shellfleet/source', '--no-warnings'],
  join(checkoutRoot, 'apps/api/src/main.ts'),
];

let stack: TestFleet;
let server: ChildProcess;
let env: Record<string, string | undefined>;
beforeAll(async () => {
  stack = await startFleet({
    slots: 40,
    env: { SHELLFLEET_POLICIES: 'docker,host', ...(isRoot ? { SHELLFLEET_HOST_USER: '4731' } : {}) },
  });
  const { redisUrl, namespace, sealKey, fleet } = stack;
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  env = {
    ...{ PATH, NODE_COMPILE_CACHE, DOCKER_HOST: inject('dockerHost'), SHELLFLEET_LOG_LEVEL: 'error' },
    ...{ SHELLFLEET_REDIS_URL: redisUrl, SHELLFLEET_NAMESPACE: namespace, SHELLFLEET_SEAL_KEY: sealKey },
    ...{ SHELLFLEET_API_RATE_LIMIT: '100000', PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: join(client, 'src') },
  };
  const [program = '', ...args] = serve;
  server = spawn(program, args, {
    env: { ...env, SHELLFLEET_API_PORT: '0' },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [{ url }] = (await once(server, 'message')) as [{ url: string }];
  const agent = await fleet.keys.create({ name: 'agent', scopes: ['submit', 'read', 'approve', 'admin'] });
  const operator = await fleet.keys.create({ name: 'operator', scopes: ['read', 'approve'] });
  env.SHELLFLEET_TEST_STAGE = JSON.stringify({ url, key: agent.key, operator_key: operator.key, namespace, serve });
});
afterAll(async () => {
  server?.kill('SIGKILL');
  await stack?.[Symbol.asyncDispose]();
});

/** Runs the tests. Returns the titles of those that passed, and the whole report. */
function runTests(): Promise<{ exitCode: number; passed: string[]; report: string }> {
  const args = ['-W', 'error', '-m', 'unittest', 'discover', '--verbose', '--start-directory', 'tests'];
  return new Promise((resolve) => {
    execFile(
      '/usr/bin/python3',
      args,
      { cwd: client, env, timeout: 110_000, maxBuffer: 1 << 26 },
      (error, _stdout, report) => {
        const passed = Array.from(report.matchAll(/^(test_\w+) .*\.\.\. ok$/gm), ([, title = '']) => title);
        resolve({ exitCode: error === null ? 0 : Number(error.code), passed, report });
      },
    );
  });
}

describe('the Python client', () => {
  test('passes its own tests, and leaves no socket, task or thread behind', async () => {
    const { exitCode, passed, report } = await runTests();
    // Python reports what a destructor finds, such as an open socket, and goes on.
    expect(report).not.toMatch(/ResourceWarning|Exception ignored|was destroyed but it is pending|never retrieved/);
    expect({ exitCode, report: exitCode === 0 ? '' : report }).toEqual({ exitCode: 0, report: '' });
    expect(passed.length).toBeGreaterThan(70);
  }, 120_000);
});
