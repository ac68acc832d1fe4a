import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type ApiProcess, startApiProcess } from '../support/api-process.ts';
import { isRoot } from '../support/host-leftovers.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';

// The tests of the Python client, by Python's own runner, against a fleet and its API; and its examples.

const client = join(checkoutRoot, 'clients/python');

let stack: TestFleet;
let api: ApiProcess;
let env: Record<string, string | undefined>;
beforeAll(async () => {
  stack = await startFleet({
    slots: 40,
    env: {
      ...{ SHELLFLEET_POLICIES: 'docker,host', SHELLFLEET_TOOLS: toolModules('everyday') },
      ...(isRoot ? { SHELLFLEET_HOST_USER: '4731' } : {}),
    },
  });
  const { fleet, namespace } = stack;
  api = await startApiProcess(stack);
  const agent = await fleet.keys.create({ name: 'agent', scopes: ['submit', 'read', 'approve', 'admin'] });
  const operator = await fleet.keys.create({ name: 'operator', scopes: ['read', 'approve'] });
  const { url, command: serve } = api;
  env = {
    ...api.env,
    ...{ DOCKER_HOST: inject('dockerHost'), PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: join(client, 'src') },
    SHELLFLEET_TEST_STAGE: JSON.stringify({ url, key: agent.key, operator_key: operator.key, namespace, serve }),
    ...{ SHELLFLEET_URL: url, SHELLFLEET_API_KEY: agent.key },
  };
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
});

/** Runs Python in the directory of the client. Returns its exit code and what it printed. */
function python(args: readonly string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const options = { cwd: client, env, timeout: 110_000, maxBuffer: 1 << 26 };
  return new Promise((resolve) => {
    execFile('/usr/bin/python3', ['-W', 'error', ...args], options, (error, stdout, stderr) =>
      resolve({ exitCode: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describe('the Python client', () => {
  test('passes its own tests, and leaves no socket, task or thread behind', async () => {
    const args = ['-m', 'unittest', 'discover', '--verbose', '--start-directory', 'tests'];
    const { exitCode, stderr: report } = await python(args);
    const passed = Array.from(report.matchAll(/^(test_\w+) .*\.\.\. ok$/gm), ([, title = '']) => title);
    // Python reports what a destructor finds, such as an open socket, and goes on.
    expect(report).not.toMatch(/ResourceWarning|Exception ignored|was destroyed but it is pending|never retrieved/);
    expect({ exitCode, report: exitCode === 0 ? '' : report }).toEqual({ exitCode: 0, report: '' });
    expect(passed.length).toBeGreaterThan(80);
  }, 120_000);

  test('has an example of an agent with eight sessions at once', async () => {
    const { exitCode, stdout, stderr } = await python(['examples/agent_loop.py']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain('8 of 8 agents reached their goal');
  });

  test('has an example of an evaluation with files in and out', async () => {
    const { exitCode, stdout, stderr } = await python(['examples/evaluation.py', join(stack.stateDirectory, 'out')]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const outcomes = stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
    expect(outcomes.map(({ id, passed, solve }) => `${id} ${passed} ${solve}`)).toEqual([
      'upper true success',
      'twice true success',
      'wrong false success',
      'endless false timeout',
    ]);
    const graded = join(stack.stateDirectory, 'out/twice/report/graded.txt');
    expect(await readFile(graded, 'utf8')).toBe('a\na\n');
  });
});
