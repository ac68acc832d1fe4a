// The keeper's C reads files that are laid out as the kernel has them in both versions of control groups.
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
  directory = await mkdtemp(join(tmpdir(), 'sf-enforced-'));
  const sources = [join(library, 'fuzz/read-enforced.c'), join(library, 'src/enforced.c')];
  await run('cc', ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-o', join(directory, 'read-enforced'), ...sources]);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function read(files: Record<string, string>, workspace = directory): Promise<string[]> {
  const root = await mkdtemp(join(directory, 'root-'));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const args = [join(root, 'proc'), join(root, 'cgroup'), workspace];
  return (await run(join(directory, 'read-enforced'), args)).stdout.split('\n').slice(0, -1);
}

describe('what the kernel enforces', () => {
  test('is read from the process and a control group of version 2', async () => {
    const status = 'Name:\tkeeper\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\nCapBnd:\t0000000000000000\n';
    const lines = await read({
      'proc/uid_map': '         0   65536      65536\n',
      'proc/status': `${status}CapEff:\t0000000000000000\n`,
      'cgroup/cgroup.controllers': 'cpu memory pids\n',
      'cgroup/memory.max': '536870912\n',
      'cgroup/pids.max': 'max\n',
      'cgroup/memory.oom.group': '1\n',
    });
    expect(lines).toEqual([
      'uid_map 0 65536 65536',
      'cap_eff 0000000000000000',
      'cap_bnd 0000000000000000',
      'no_new_privs 1',
      'seccomp 2',
      'cgroup 2',
      'memory_max 536870912',
      'pids_max max',
      'oom_group 1',
      'exec_workspace 1',
    ]);
  });

  test('is read from a control group of version 1, which has no group kill', async () => {
    const lines = await read({
      'proc/uid_map': '0 1000 1\n1 100000 65536\n',
      'cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
      'cgroup/pids/pids.max': '256\n',
    });
    expect(lines).toEqual([
      'uid_map 0 1000 1,1 100000 65536',
      'cgroup 1',
      'memory_max 9223372036854771712',
      'pids_max 256',
      'exec_workspace 1',
    ]);
  });

  test('has no line for what cannot be read', async () => {
    expect(await read({}, '/no/such/directory')).toEqual([]);
  });

  test('has no line for an empty value', async () => {
    const lines = await read({ 'proc/uid_map': '\n', 'proc/status': 'CapEff:\t\nSeccomp:\t2\n' }, '/no/such/directory');
    expect(lines).toEqual(['seccomp 2']);
  });
});
