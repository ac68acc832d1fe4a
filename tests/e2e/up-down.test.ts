import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type HostInfo, PROTOCOL_VERSION } from '@shellfleet/protocol';
import { checkoutRoot } from '@shellfleet/setup';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';

const run = promisify(execFile);
const WAIT = { timeout: 30_000, interval: 100 };

const shellfleet = join(checkoutRoot, 'node_modules/.bin/shellfleet');

let directory: string;
let env: NodeJS.ProcessEnv;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-up-'));
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SHELLFLEET_'));
  env = { ...Object.fromEntries(inherited), SHELLFLEET_STATE_DIR: directory };
});
afterEach(async () => {
  for (const { pid, exitCode } of besides.splice(0)) if (exitCode === null && pid !== undefined) end(pid);
  await run(shellfleet, ['down'], { env });
  await rm(directory, { recursive: true, force: true });
});

/** Processes of the test itself, each the leader of its group. */
const besides: ChildProcess[] = [];

/** Interrupts a process and those that it has started, like Ctrl-C at a terminal. */
function end(pid: number): void {
  try {
    process.kill(-pid, 'SIGINT');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Runs a command of the fleet that `up` has started, from the bundle, which starts in half the time. */
function ask(...args: string[]) {
  return run(process.execPath, ['--no-warnings', inject('programs').cli, ...args], { env });
}

/** Returns the processes that `up` has recorded as started, its Redis included. */
async function startedPids(): Promise<number[]> {
  const { supervisor, workers } = JSON.parse(await readFile(join(directory, 'up.json'), 'utf8'));
  const [redis] = (await readFile(join(directory, 'redis', 'redis.pid'), 'utf8')).split('\n');
  return [supervisor, ...workers].map(({ pid }) => pid).concat(Number(redis));
}

/** Returns the living processes of these. Zombies are left out: some containers have no process that reaps orphans. */
function living(pids: number[]): number[] {
  return pids.filter((pid) => {
    try {
      return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  });
}

async function changeRecord(change: object): Promise<void> {
  const record = JSON.parse(await readFile(join(directory, 'up.json'), 'utf8'));
  await writeFile(join(directory, 'up.json'), JSON.stringify({ ...record, ...change }));
}

/** Returns the hosts that `up` has started. */
async function hosts(): Promise<HostInfo[]> {
  const { stdout } = await ask('hosts', 'ls', '--json');
  const all: HostInfo[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return all.filter(({ id }) => id !== 'by-hand');
}

/** Starts a command line that runs next to the test. */
function follow(args: string[], environment = env) {
  const child = spawn(shellfleet, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  besides.push(child);
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (data: Buffer) => {
      texts[name] += data.toString();
    });
  const ended = once(child, 'close').then(([exitCode]) => exitCode as number | null);
  return { child, ended, said: () => texts.stderr, printed: () => texts.stdout };
}

describe('up and down', () => {
  test('`down` ends everything that `up --detach` has started', async () => {
    await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
    const pids = await startedPids();
    expect(living(pids)).toEqual(pids);
    await ask('exec', 'held', '--', 'sleep 100 & echo on');
    const { stderr } = await run(shellfleet, ['down'], { env });
    expect(stderr).toContain('Ending the fleet, and with it: 1 open session, 0 running commands');
    expect(stderr).toContain('has ended');
    expect(stderr).toMatch(
      /Session images stay for the next `up`: shellfleet\/session:.*\. To remove them: docker rmi /,
    );
    expect(living(pids)).toEqual([]);
    expect(await readFile(join(directory, 'up.log'), 'utf8')).toContain('with it: 1 open session, 0');
  });

  test('`up` adopts the shells of a killed supervisor, and `down` ends its leftover processes', async () => {
    await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
    await ask('exec', 'kept', '--', 'X=5');
    const [supervisor = 0] = await startedPids();
    process.kill(supervisor, 'SIGKILL');
    const { stdout: findings } = await run(shellfleet, ['doctor', '--json'], { env }).catch((error) => error);
    expect(findings).toContain(
      '"name":"fleet","state":"present","detail":"version 0.1.0 serves, but its supervisor is gone',
    );
    const again = await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
    expect(again.stderr).toContain('taken over');
    expect((await ask('exec', 'kept', '--', 'echo $X')).stdout).toBe('5\n');

    const pids = await startedPids();
    process.kill(pids[0] ?? 0, 'SIGKILL');
    await run(shellfleet, ['down'], { env });
    expect(living(pids.slice(1))).toEqual([]);
  });

  test('`down` names a worker that `up` did not start and that keeps running', async () => {
    await run(shellfleet, ['up', '--detach', '--slots', '1'], { env });
    const byHand = follow(['worker', '--slots', '1', '--host-id', 'by-hand']);
    await expect.poll(byHand.printed, WAIT).toContain('worker.started');
    const { stderr } = await run(shellfleet, ['down'], { env });
    expect(stderr).toContain('because `up` did not start it: the worker of host by-hand.');
    // LOG-3.
    await expect.poll(byHand.printed, WAIT).toContain('host.beat-failed');
    expect(byHand.printed()).not.toMatch(/writeable[^\n]*\\n +at /);
    expect(byHand.child.exitCode).toBe(null);
  });

  test('`up` uses a fleet of the same version from another checkout, and leaves that running', async () => {
    await run(shellfleet, ['up', '--detach'], { env });
    const pids = await startedPids();
    await changeRecord({ build: '0.1.0 of the checkout /elsewhere' });
    const { stderr } = await run(shellfleet, ['up', '--detach'], { env });
    expect(stderr).toContain('it is used as it is');
    expect(stderr).toContain(`It is 0.1.0 of the checkout /elsewhere; this is 0.1.0 of the checkout ${checkoutRoot}`);
    expect(living(await startedPids())).toEqual(pids);
  });
});

describe('up while a fleet of another version runs', { timeout: 120_000 }, () => {
  test('refuses while that fleet’s workers are used, and --replace waits for running commands', async () => {
    await run(shellfleet, ['up', '--detach', '--slots', '1'], { env });
    const before = await startedPids();
    // A session of another tenant counts too.
    const running = follow([
      '--tenant',
      'other',
      'exec',
      'own',
      '--',
      'until [ -e /tmp/end ]; do sleep 0.1; done; echo whole',
    ]);
    await expect.poll(async () => (await hosts())[0], WAIT).toMatchObject({ sessions: 1, running: 1 });
    // A worker that `up` did not start goes on, so its session does not count.
    const byHand = follow(['worker', '--slots', '1', '--host-id', 'by-hand']);
    await ask('exec', 'elsewhere', '--', 'true');
    await changeRecord({ version: '0.0.1', build: '0.0.1 of the checkout /older' });

    const refused = await run(shellfleet, ['up', '--detach'], { env }).catch((error) => error);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^shellfleet: A fleet of another version runs: 0\.0\.1 of the checkout \/older, since .* \(this is 0\.1\.0\)\. In use: 1 open session, 1 running command\. Nothing was changed\.\nshellfleet: {3}Fix: up --replace /,
    );
    end(byHand.child.pid ?? 0);
    await byHand.ended;

    const interrupted = follow(['up', '--replace']);
    await expect.poll(interrupted.said, WAIT).toContain('1 open session, 1 running command.');
    await expect.poll(async () => (await hosts())[0]?.state, WAIT).toBe('draining');
    end(interrupted.child.pid ?? 0);
    expect(await interrupted.ended).toBe(130);
    expect(await hosts()).toMatchObject([{ state: 'up', running: 1 }]);
    expect(living(before)).toEqual(before);

    const replacing = follow(['up', '--detach', '--replace', '--slots', '2']);
    await expect.poll(replacing.said, WAIT).toContain('have 60 s to finish');
    await ask('--tenant', 'other', 'cp', '/dev/null', 'own:/tmp/end');
    expect([await running.ended, running.printed()]).toEqual([0, 'whole\n']);
    expect(await replacing.ended).toBe(0);
    expect(replacing.said()).toContain('Ending it: 1 open session, 0 running commands.');
    expect(living(before)).toEqual([]);
    expect(await hosts()).toMatchObject([{ state: 'up', slots: 2 }]);
  });

  test('replaces a fleet whose commands do not finish in time, and reports those', async () => {
    await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
    const before = await startedPids();
    const running = follow(['exec', 'long', '--', 'sleep 600']);
    await expect.poll(async () => (await hosts())[0]?.running, WAIT).toBe(1);
    const { stderr } = await run(shellfleet, ['up', '--detach', '--replace', '--drain-timeout', '1s'], { env });
    expect(stderr).toContain('1 command did not finish in time: cancelled with the fleet.');
    expect(living(before)).toEqual([]);
    expect(await running.ended).not.toBe(0);
    expect((await ask('exec', 'fresh', '--', 'echo on')).stdout).toBe('on\n');
  });
});

describe('up on a Redis with keys of another protocol version', { timeout: 180_000 }, () => {
  const OTHER = PROTOCOL_VERSION + 1;
  /** Options of a fleet that starts sooner, because it needs no engine. */
  const ON_HOST = ['--slots', '1', '--policies', 'host'];
  beforeEach(() => {
    env.SHELLFLEET_HOST_USER = 'nobody';
  });
  /** The environment of a checkout that is one version newer. */
  const newer = () => ({
    ...env,
    NODE_OPTIONS: `--import ${new URL('../fixtures/newer-version.ts', import.meta.url).href}`,
    SHELLFLEET_TEST_NEWER: 'protocol',
  });

  test('refuses a running fleet; --replace drains it, reports, and removes its keys', async () => {
    await run(shellfleet, ['up', '--detach', '--slots', '1'], { env });
    const before = await startedPids();
    const script = 'until [ -e /tmp/end ]; do sleep 0.1; done; echo whole';
    const running = follow(['exec', 'own', '--', script]);
    await expect.poll(async () => (await hosts())[0], WAIT).toMatchObject({ sessions: 1, running: 1 });

    const refused = await run(shellfleet, ['up', '--detach'], { env: newer() }).catch((error) => error);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      new RegExp(
        `A fleet runs whose keys have version ${PROTOCOL_VERSION} of the protocol: .* \\(this process has version ${OTHER}\\)\\. In use: 1 open session, 1 running command\\. Nothing was changed\\.`,
      ),
    );
    const listed = await run(shellfleet, ['ps'], { env: newer() }).catch((error) => error);
    expect(listed.stderr).toContain(
      `version ${PROTOCOL_VERSION} of the protocol, and this process has version ${OTHER}`,
    );
    expect(living(before)).toEqual(before);

    const replacing = follow(['up', '--detach', '--replace', '--slots', '1'], newer());
    await expect.poll(replacing.said, WAIT).toContain('have 60 s to finish');
    await ask('cp', '/dev/null', 'own:/tmp/end');
    expect([await running.ended, running.printed()]).toEqual([0, 'whole\n']);
    expect([await replacing.ended, replacing.said()]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(
          `Removing the keys of version ${PROTOCOL_VERSION} of the protocol in the namespace shellfleet: 2 sessions, [2-9] commands, \\d+ keys\\.`,
        ),
      ),
    ]);
    expect(living(before)).toEqual([]);
    const { stdout } = await run(shellfleet, ['exec', 'fresh', '--', 'echo on'], { env: newer() });
    expect(stdout).toBe('on\n');
    const sessions = (await run(shellfleet, ['ps', '--all', '--json'], { env: newer() })).stdout;
    expect(sessions).toContain('"id":"fresh"');
    expect(sessions).not.toContain('"id":"own"');
  });

  test('refuses keys of an ended fleet, and removes none without --replace', async () => {
    await run(shellfleet, ['up', '--detach', ...ON_HOST], { env: newer() });
    await run(shellfleet, ['exec', '--policy', 'host', 'left', '--', 'echo on'], { env: newer() });
    await run(shellfleet, ['down'], { env: newer() });
    const refused = await run(shellfleet, ['up', '--detach', ...ON_HOST], { env }).catch((error) => error);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      new RegExp(
        `Redis has keys of version ${OTHER} of the protocol in the namespace shellfleet, and this process has version ${PROTOCOL_VERSION}: 2 sessions, [2-9] commands, \\d+ keys\\. Nothing was changed\\.`,
      ),
    );
    await run(shellfleet, ['up', '--detach', ...ON_HOST], { env: newer() });
    expect((await run(shellfleet, ['ps', '--all', '--json'], { env: newer() })).stdout).toContain('"id":"left"');
    await run(shellfleet, ['down'], { env: newer() });
    const { stderr } = await run(shellfleet, ['up', '--detach', '--replace', ...ON_HOST], { env });
    expect(stderr).toContain(`Removing the keys of version ${OTHER} of the protocol`);
    expect((await ask('exec', '--policy', 'host', 'again', '--', 'echo on')).stdout).toBe('on\n');
  });
});

describe('up with taken slots', () => {
  test('succeeds, and reports that its first command waits', {
    timeout: 120_000,
  }, async () => {
    await run(shellfleet, ['up', '--detach', '--slots', '1'], { env });
    await ask('exec', 'held', '--', 'X=5');
    const [supervisor = 0] = await startedPids();
    process.kill(supervisor, 'SIGKILL');
    const { stderr } = await run(shellfleet, ['up', '--detach', '--slots', '1'], { env });
    expect(stderr).toContain('The first command still waits: every slot is taken.');
    expect(stderr).toContain('The fleet is up, with 0 free slots.');
    expect((await ask('exec', 'held', '--', 'echo $X')).stdout).toBe('5\n');
  });
});
