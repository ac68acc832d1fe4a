import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { afterEach, beforeEach, expect, test } from 'vitest';

const run = promisify(execFile);
const shellfleet = join(checkoutRoot, 'node_modules/.bin/shellfleet');

let folder: string;
let env: NodeJS.ProcessEnv;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sf-up-'));
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SHELLFLEET_'));
  env = { ...Object.fromEntries(inherited), SHELLFLEET_STATE_DIR: folder };
});
afterEach(async () => {
  await run(shellfleet, ['down'], { env });
  await rm(folder, { recursive: true, force: true });
});

/** Processes that `up` has recorded as started, its Redis included. */
async function startedPids(): Promise<number[]> {
  const { supervisor, workers } = JSON.parse(await readFile(join(folder, 'up.json'), 'utf8'));
  const [redis] = (await readFile(join(folder, 'redis', 'redis.pid'), 'utf8')).split('\n');
  return [supervisor, ...workers].map(({ pid }) => pid).concat(Number(redis));
}

/** Those of the processes that live. Zombies do not: some containers have no process that reaps orphans. */
function living(pids: number[]): number[] {
  return pids.filter((pid) => {
    try {
      return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  });
}

test('down ends everything that up --detach has started', async () => {
  await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
  const pids = await startedPids();
  expect(living(pids)).toEqual(pids);
  await run(shellfleet, ['exec', 'held', '--', 'sleep 100 & echo on'], { env });
  const { stderr } = await run(shellfleet, ['down'], { env });
  expect(stderr).toContain('has ended');
  expect(living(pids)).toEqual([]);
  expect(await readFile(join(folder, 'up.log'), 'utf8')).toContain('1 open sessions end with it');
});

test('up takes over the shells of a killed supervisor, and down ends what a killed supervisor left', async () => {
  await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
  await run(shellfleet, ['exec', 'kept', '--', 'X=5'], { env });
  const [supervisor = 0] = await startedPids();
  process.kill(supervisor, 'SIGKILL');
  const again = await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
  expect(again.stderr).toContain('taken over');
  expect((await run(shellfleet, ['exec', 'kept', '--', 'echo $X'], { env })).stdout).toBe('5\n');

  const pids = await startedPids();
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await run(shellfleet, ['down'], { env });
  expect(living(pids.slice(1))).toEqual([]);
});

test('a fleet that runs already is used as it is', async () => {
  await run(shellfleet, ['up', '--detach'], { env });
  const pids = await startedPids();
  expect((await run(shellfleet, ['up', '--detach'], { env })).stderr).toContain('used as it is');
  expect(await startedPids()).toEqual(pids);
});

test('a fleet of another version is replaced: it ends with its sessions, and a new one is up', async () => {
  await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
  await run(shellfleet, ['exec', 'kept', '--', 'X=5'], { env });
  const before = await startedPids();
  const upAsAnotherVersion = async () => {
    const record = JSON.parse(await readFile(join(folder, 'up.json'), 'utf8'));
    await writeFile(join(folder, 'up.json'), JSON.stringify({ ...record, version: '0.0.1' }));
    return (await run(shellfleet, ['up', '--detach', '--slots', '3'], { env })).stderr;
  };
  const words = await upAsAnotherVersion();
  expect(words).toContain('A fleet of another version or checkout runs (0.0.1); it is replaced.');
  expect(living(before)).toEqual([]);
  const after = await startedPids();
  expect(living(after)).toEqual(after);
  expect((await run(shellfleet, ['exec', 'kept', '--', 'echo "[$X]"'], { env })).stdout).toBe('[]\n');
});

test('a fleet whose slots are all taken is up all the same, and reports that its first command waits', {
  timeout: 120_000,
}, async () => {
  await run(shellfleet, ['up', '--detach', '--slots', '1'], { env });
  await run(shellfleet, ['exec', 'held', '--', 'X=5'], { env });
  const [supervisor = 0] = await startedPids();
  process.kill(supervisor, 'SIGKILL');
  const { stderr } = await run(shellfleet, ['up', '--detach', '--slots', '1'], { env });
  expect(stderr).toContain('The first command still waits: every slot is taken.');
  expect(stderr).toContain('The fleet is up, with 0 free slots.');
  expect((await run(shellfleet, ['exec', 'held', '--', 'echo $X'], { env })).stdout).toBe('5\n');
});
