import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { root } from './steps.ts';

// Runs bootstrap.cjs in another checkout, with only the test's own npm and node on PATH.

const lock = { packages: { '': {}, 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { link: true } } };
/** Replaces the pinned Node, and prints the arguments with which the bootstrap starts it. */
const pinnedNode = `#!/bin/sh
[ "$1" = --version ] && { echo v24.21.0; exit; }
echo "$@"
exit 7
`;
/** Installs the pinned Node, and leaves a trace of each run. */
const workingNpm = `#!/bin/sh
echo "$@" >> npm-runs
/bin/mkdir -p node_modules/.bin
/bin/cp pinned-node node_modules/.bin/node
`;

let checkout: string;

beforeEach(async () => {
  checkout = await mkdtemp(join(tmpdir(), 'shellfleet-bootstrap-'));
  await mkdir(join(checkout, 'scripts'));
  await mkdir(join(checkout, 'bin'));
  await cp(join(root, 'scripts/bootstrap.cjs'), join(checkout, 'scripts/bootstrap.cjs'));
  await writeFile(join(checkout, 'package-lock.json'), JSON.stringify(lock));
  await program('pinned-node', pinnedNode);
});

afterEach(() => rm(checkout, { recursive: true, force: true }));

async function program(path: string, text: string): Promise<void> {
  await writeFile(join(checkout, path), text);
  await chmod(join(checkout, path), 0o755);
}

function bootstrap(...args: string[]): Pick<SpawnSyncReturns<string>, 'status' | 'stdout' | 'stderr'> {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/bootstrap.cjs', ...args], options());
  return { status, stdout, stderr };
}

function options() {
  return { cwd: checkout, env: { PATH: join(checkout, 'bin') }, encoding: 'utf8' } as const;
}

const npmRuns = async () =>
  (await readFile(join(checkout, 'npm-runs'), 'utf8').catch(() => '')).split('\n').filter(Boolean).length;

describe('the start from a checkout', () => {
  test('installs the dependencies once, and hands over to the pinned Node with its exit code', async () => {
    await program('bin/npm', workingNpm);
    const flags = '--conditions=@shellfleet/source --no-warnings';
    expect(bootstrap('start', '--slots', '2')).toEqual({
      status: 7,
      stdout: `${flags} ${checkout}/apps/producer/src/main.ts up --slots 2\n`,
      stderr: 'Installing dependencies (npm ci; about half a minute)\n',
    });
    expect(bootstrap('test', 'a.test.ts')).toEqual({
      status: 7,
      stdout: `${flags} ${checkout}/scripts/test.ts a.test.ts\n`,
      stderr: '',
    });
    expect(await npmRuns()).toBe(1);
  });

  test('installs the dependencies again when the lock file has changed', async () => {
    await program('bin/npm', workingNpm);
    bootstrap('start');
    await writeFile(join(checkout, 'package-lock.json'), JSON.stringify({ ...lock, changed: true }));
    bootstrap('start');
    expect(await npmRuns()).toBe(2);
  });

  test.each([
    ['accepts an installation that is what the lock file asks for', { 'node_modules/a': { version: '1.0.0' } }, 'b', 0],
    ['installs over one of other versions', { 'node_modules/a': { version: '1.0.1' } }, 'b', 1],
    ['installs over one with a package missing', {}, 'b', 1],
    ['installs over one without a package of this checkout', { 'node_modules/a': { version: '1.0.0' } }, 'c', 1],
  ])('%s', async (_title, packages, linked, runs) => {
    await program('bin/npm', workingNpm);
    await mkdir(join(checkout, 'node_modules/.bin'), { recursive: true });
    await mkdir(join(checkout, 'node_modules', linked));
    await program('node_modules/.bin/node', pinnedNode);
    await writeFile(join(checkout, 'node_modules/.package-lock.json'), JSON.stringify({ packages }));
    expect(bootstrap('start').status).toBe(7);
    expect(await npmRuns()).toBe(runs);
  });

  test('fails with npm ci, and tries again at the next start', async () => {
    await program('bin/npm', '#!/bin/sh\necho "no registry" >&2\nexit 1\n');
    expect(bootstrap('test')).toEqual({
      status: 1,
      stdout: '0 passed, 1 failed\n',
      stderr: expect.stringMatching(/no registry\nnpm ci failed; .* run this again\.\n$/),
    });
    expect(bootstrap('start')).toMatchObject({ status: 1, stdout: '' });
    await program('bin/npm', workingNpm);
    expect(bootstrap('start').status).toBe(7);
  });

  test('names what to install without npm', () => {
    expect(bootstrap('start')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /npm could not be started: .*ENOENT\. Install Node with npm, then run this again\.\n$/,
      ),
    });
  });

  test.each([
    ['no Node', undefined],
    ['a Node that is too old', '#!/bin/sh\necho v22.1.0\n'],
  ])('names the version to install with %s to hand over to', async (_title, node) => {
    await program('bin/npm', '#!/bin/sh\n/bin/mkdir -p node_modules\n');
    if (node) await program('bin/node', node);
    expect(bootstrap('start')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/Node 24 or newer is needed: .* Install Node 24\.\n$/),
    });
  });

  test('uses a recent Node of PATH where the platform lacks the pinned one', async () => {
    await program('bin/npm', '#!/bin/sh\n/bin/mkdir -p node_modules\n');
    await program('bin/node', pinnedNode.replace('v24.21.0', 'v26.0.0'));
    expect(bootstrap('start').status).toBe(7);
  });

  test.each([[[]], [['nope']], [['toString']]])('refuses the job %j with its usage', (args) => {
    expect(bootstrap(...args)).toEqual({
      status: 2,
      stdout: '',
      stderr:
        'usage: node scripts/bootstrap.cjs start|test|bench|chaos|rules-trial|kubernetes|example|images [arguments]\n',
    });
  });

  test('passes SIGTERM on, and ends like the program that it started', async () => {
    await program('bin/npm', workingNpm);
    await program(
      'pinned-node',
      '#!/bin/sh\n[ "$1" = --version ] && { echo v24.0.0; exit; }\necho started\nexec /bin/sleep 60\n',
    );
    const child = spawn(process.execPath, ['scripts/bootstrap.cjs', 'start'], { ...options(), stdio: 'pipe' });
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([128 + 15, null]);
  });
});
