import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import Docker from 'dockerode';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { processesOf } from '../support/state-directory-processes.ts';

// `npm start`, interrupted at each line that it reports on a machine that already has an engine, the images and the
// keeper.

// Each test starts and ends a fleet of a dozen processes. It takes seconds, but much longer on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const run = promisify(execFile);
const shellfleet = join(checkoutRoot, 'node_modules/.bin/shellfleet');

let directory: string;
let namespace: string;
let env: NodeJS.ProcessEnv;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-cut-'));
  namespace = directory.replaceAll(/[^A-Za-z0-9]/g, '');
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SHELLFLEET_'));
  env = { ...Object.fromEntries(inherited), SHELLFLEET_STATE_DIR: directory, SHELLFLEET_NAMESPACE: namespace };
});
afterEach(async () => {
  await ask('down');
  await rm(directory, { recursive: true, force: true });
});

/** Runs a command of the fleet that was started, from the bundle, which starts in half the time. */
const ask = (...args: string[]) => run(process.execPath, ['--no-warnings', inject('programs').cli, ...args], { env });

const STARTING_REDIS = 'Starting Redis';
const STARTING_WORKERS = 'Starting a worker';
const READY = 'First command: ';
const UP = 'The fleet is up';

/** Runs `npm start` in its own process session, and resolves when the line is reported. */
async function startUntil(line: string, args: string[] = []) {
  const up = spawn(process.execPath, ['scripts/bootstrap.cjs', 'start', '--slots', '2', ...args], {
    cwd: checkoutRoot,
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  up.stderr.on('data', (data: Buffer) => {
    said += data.toString();
  });
  await expect.poll(() => said, { timeout: 90_000, interval: 2 }).toContain(line);
  return { up, said: () => said };
}

/** Sends a signal to all processes of the session, like a terminal. */
function signalAll({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  process.kill(-(pid ?? 0), signal);
}

/** Returns the processes, containers and records of this fleet. */
async function leftOver() {
  const docker = new Docker({ socketPath: inject('dockerHost').replace(/^unix:\/\//, '') });
  const filters = { label: [`shellfleet.namespace=${namespace}`] };
  const containers = await docker.listContainers({ all: true, filters });
  const records = (await readdir(directory)).filter((name) => /^(up|fleet)\.json|\.pid/.test(name));
  return { processes: processesOf(directory), containers: containers.map(({ Id }) => Id), records };
}

const NOTHING = { processes: [], containers: [], records: [] };

describe('npm start', () => {
  test.each([
    [STARTING_REDIS, 'SIGINT'],
    [STARTING_WORKERS, 'SIGINT'],
    [READY, 'SIGHUP'],
    [UP, 'SIGTERM'],
  ] as const)('ends everything that it started when interrupted at "%s" by %s', async (line, signal) => {
    const { up, said } = await startUntil(line);
    signalAll(up, signal);
    const [exitCode] = await once(up, 'exit');
    expect({ exitCode, ...(await leftOver()) }, said()).toEqual({ exitCode: line === UP ? 0 : 130, ...NOTHING });
    expect((await ask('down')).stderr).toContain('No fleet of this machine was running.');
  });

  test.each([STARTING_REDIS, STARTING_WORKERS, READY, UP])(
    'leaves only what down ends when it is killed at "%s"',
    async (line) => {
      const { up } = await startUntil(line);
      signalAll(up, 'SIGKILL');
      await once(up, 'exit');
      expect((await ask('down')).stderr).toContain('The fleet of this machine has ended.');
      // A worker whose supervisor was killed before it was ready ends by itself.
      await expect.poll(leftOver, { timeout: 60_000 }).toEqual(NOTHING);
    },
  );

  test('starts one fleet for two calls after a call was killed while starting its worker', async () => {
    const { up } = await startUntil(STARTING_WORKERS);
    signalAll(up, 'SIGKILL');
    await once(up, 'exit');
    const [second, third] = await Promise.all([startUntil(UP), startUntil(UP)]);
    const lines = `${second.said()}${third.said()}`;
    expect(lines).toContain('what is left of it is taken over');
    expect(lines).toContain('it is used as it is');
    expect((await ask('exec', 'x', '--', 'echo on')).stdout).toBe('on\n');
  });

  test.each(['SIGINT', 'SIGKILL'] as const)(
    'ends the fleet behind up --detach when %s interrupts its wait',
    async (signal) => {
      const { up } = await startUntil(STARTING_REDIS, ['--detach']);
      signalAll(up, signal);
      await once(up, 'exit');
      await expect.poll(leftOver, { timeout: 60_000 }).toEqual(NOTHING);
      expect(await readFile(join(directory, 'up.log'), 'utf8')).toContain('Interrupted: what was started ends.');
    },
  );

  // case 76
  test('ends with reason and exit code 2 when a worker’s settings are invalid', async () => {
    const wrong = { ...env, SHELLFLEET_WORKSPACES: 'not/absolute' };
    const { stderr, code } = await run(shellfleet, ['up'], { env: wrong }).catch((error) => error);
    expect(stderr).toMatch(/SHELLFLEET_WORKSPACES/);
    expect(code).toBe(2);
    expect(stderr).not.toContain('is started again');
    expect(await leftOver()).toEqual(NOTHING);
  });
});
