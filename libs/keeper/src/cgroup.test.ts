// A machine has only one version of control groups, so recorded files of both versions are read by the keeper's C.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const library = join(import.meta.dirname, '..');
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-cgroup-'));
  const sources = [join(library, 'fuzz/read-cgroup.c'), join(library, 'src/cgroup.c')];
  await run('cc', ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-o', join(directory, 'read-cgroup'), ...sources]);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function read(name: string, files: Record<string, string>): Promise<unknown> {
  const root = join(directory, name);
  await mkdir(root);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return JSON.parse((await run(join(directory, 'read-cgroup'), [root])).stdout);
}

/** Numbers of `forHost` without a kill, after one at the container's own limit, and after one below it. */
const NO_KILLS = { oomKills: 0, atLimit: 0, forHost: [0, 0, 0] };
const NO_USAGE = { processorUs: 0, memoryPeak: 0 };

describe('the values of a control group', () => {
  test('include limits, refused forks, out-of-memory kills and use in version 2', async () => {
    const found = await read('v2', {
      'cgroup.controllers': 'cpuset cpu io memory hugetlb pids rdma misc\n',
      'pids.max': '64\n',
      'pids.current': '63\n',
      'pids.events': 'max 1207\n',
      'memory.events': 'low 0\nhigh 0\nmax 1822\noom 3\noom_kill 2\noom_group_kill 0\n',
      'memory.peak': '104857600\n',
      'cpu.stat': 'usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n',
    });
    const usage = { processorUs: 1_234_567, memoryPeak: 104_857_600 };
    const kills = { oomKills: 2, atLimit: 3, forHost: [0, 0, 1] };
    expect(found).toEqual({ pidsMax: 64, full: 1, refused: 1207, ...kills, ...usage });
  });

  test('never show a full group in version 2 without limits', async () => {
    const found = await read('v2-free', {
      'pids.max': 'max\n',
      'pids.current': '3\n',
      'pids.events': 'max 0\n',
      'memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n',
    });
    expect(found).toEqual({ pidsMax: 0, full: 0, refused: 0, ...NO_KILLS, ...NO_USAGE });
  });

  test('include limits, refused forks, out-of-memory kills and use in version 1', async () => {
    const found = await read('v1', {
      'pids/pids.max': '256\n',
      'pids/pids.current': '254\n',
      'pids/pids.events': 'max 42\n',
      'memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 5\n',
      'memory/memory.max_usage_in_bytes': '60000000\n',
      'memory/memory.limit_in_bytes': '67108864\n',
      'cpuacct/cpuacct.usage': '1234567890\n',
    });
    const usage = { processorUs: 1_234_567, memoryPeak: 60_000_000 };
    const kills = { oomKills: 5, atLimit: 0, forHost: [0, 0, 1] };
    expect(found).toEqual({ pidsMax: 256, full: 1, refused: 42, ...kills, ...usage });
  });

  test('show no kill for the host in version 1 after a peak at the limit', async () => {
    const found = await read('v1-peak', {
      'memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 5\n',
      'memory/memory.max_usage_in_bytes': '67100672\n',
      'memory/memory.limit_in_bytes': '67108864\n',
    });
    expect(found).toMatchObject({ oomKills: 5, forHost: [0, 0, 0] });
  });

  test('count neither refused forks nor kills in version 1 of an old kernel', async () => {
    const found = await read('v1-old', {
      'pids/pids.max': '256\n',
      'pids/pids.current': '12\n',
      'memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\n',
    });
    expect(found).toEqual({ pidsMax: 256, full: 0, refused: 0, ...NO_KILLS, ...NO_USAGE });
  });

  test('include processor time in version 1 where both controllers are mounted as one', async () => {
    expect(await read('v1-joint', { 'cpu/cpuacct.usage': '5000000\n' })).toMatchObject({ processorUs: 5_000 });
  });

  test('are zero if no control group is mounted', async () => {
    expect(await read('none', {})).toEqual({ pidsMax: 0, full: 0, refused: 0, ...NO_KILLS, ...NO_USAGE });
  });
});
