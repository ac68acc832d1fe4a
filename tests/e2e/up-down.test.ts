import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
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

/** Processes that `up` has said it started, its Redis included. */
async function startedPids(): Promise<number[]> {
  const { pid, workerPids } = JSON.parse(await readFile(join(folder, 'up.json'), 'utf8'));
  const redis = Number(await readFile(join(folder, 'redis', 'redis.pid'), 'utf8'));
  return [pid, ...workerPids, redis];
}

/** What is dead and was not reaped, where nobody does that for orphans, does not live. */
function living(pids: number[]): number[] {
  return pids.filter((pid) => {
    try {
      return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  });
}

test('down ends all that up --detach has started, in order', async () => {
  await run(shellfleet, ['up', '--detach', '--slots', '2'], { env });
  const pids = await startedPids();
  expect(living(pids)).toEqual(pids);
  await run(shellfleet, ['exec', 'held', '--', 'sleep 100 & echo on'], { env });
  const { stderr } = await run(shellfleet, ['down'], { env });
  expect(stderr).toContain('has ended');
  expect(living(pids)).toEqual([]);
  expect(await readFile(join(folder, 'up.log'), 'utf8')).toContain('1 open sessions end with it');
});

test('a supervisor that was killed is taken over with its shells, and down ends what a killed one left', async () => {
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

test('what runs already is used as it is', async () => {
  await run(shellfleet, ['up', '--detach'], { env });
  const pids = await startedPids();
  expect((await run(shellfleet, ['up', '--detach'], { env })).stderr).toContain('used as it is');
  expect(await startedPids()).toEqual(pids);
});
