import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// The inspector of MCP has 120 packages, so this test alone installs it.
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';

const run = promisify(execFile);
let directory: string;
let stage: TestFleet;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-inspector-'));
  await writeFile(join(directory, 'package.json'), '{ "private": true }');
  const rules = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  [stage] = await Promise.all([
    startFleet({ slots: 1 }),
    run('npm', ['install', ...rules, INSPECTOR], { cwd: directory }),
  ]);
}, 180_000);
afterAll(async () => {
  await stage?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Returns the JSON of a request that the inspector sends to a server that it starts. */
async function inspect(...request: string[]): Promise<unknown> {
  const settings = {
    SHELLFLEET_REDIS_URL: stage.redisUrl,
    SHELLFLEET_NAMESPACE: stage.namespace,
    SHELLFLEET_SEAL_KEY: stage.sealKey,
  };
  const env = Object.entries(settings).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const program = join(directory, 'node_modules/.bin/mcp-inspector');
  const server = [process.execPath, inject('programs').cli, 'mcp'];
  const args = [program, '--cli', ...env, ...server, ...request];
  const { stdout } = await run(process.execPath, args, { cwd: directory, env: { ...process.env, HOME: directory } });
  return JSON.parse(stdout);
}

describe('the inspector of MCP', () => {
  test('lists the tools of the server, and runs a command in a session', async () => {
    const { tools } = (await inspect('--method', 'tools/list')) as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['exec', 'poll', 'write_stdin', 'cancel']));
    const call = ['--tool-name', 'exec', '--tool-arg', 'session=inspected', 'command=echo "$((6 * 7))"'];
    expect(await inspect('--method', 'tools/call', ...call)).toMatchObject({
      structuredContent: { status: 'ended', outcome: 'success', stdout: '42\n' },
    });
  });
});
