import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openControlGroups } from './open-control-groups.ts';
import { Version1 } from './version-1.ts';
import { Version2 } from './version-2.ts';

// These tests use plain files for both versions. Tests on a real kernel show the effect of the values.

const limits = { memoryBytes: 67_108_864, cpus: 0.5, pids: 32 };
let top: string;
beforeEach(async () => {
  top = await mkdtemp(join(tmpdir(), 'cgroup-'));
});
afterEach(() => rm(top, { recursive: true, force: true }));

async function lay(directory: string, files: Record<string, string>): Promise<void> {
  await mkdir(join(top, directory), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(top, directory, name), text);
}
const read = (path: string) => readFile(join(top, path), 'utf8');

describe('control groups of version 2', () => {
  const files = { 'memory.max': '', 'memory.swap.max': '', 'pids.max': '', 'cpu.max': '' };

  test('enables the controllers from the top down, and writes each limit', async () => {
    await lay('', { 'cgroup.controllers': 'cpu memory pids\n', 'cgroup.subtree_control': 'memory\n' });
    await lay('ours', { 'cgroup.subtree_control': 'cpu memory pids\n' });
    await lay('ours/host', { 'cgroup.subtree_control': '' });
    await lay('ours/host/one', { ...files, 'memory.events': 'low 0\noom 3\noom_kill 2\noom_group_kill 0\n' });
    const groups = new Version2(top, 'ours/host');
    expect(await groups.create('one', limits)).toEqual([`=${top}/ours/host/one`]);
    // The kernel adds each written word to the list; a plain file holds only the last write.
    expect(await read('cgroup.subtree_control')).toBe('+cpu +pids');
    expect(await read('ours/cgroup.subtree_control')).toBe('cpu memory pids\n');
    expect(await read('ours/host/cgroup.subtree_control')).toBe('+cpu +memory +pids');
    expect(await Promise.all(Object.keys(files).map((name) => read(`ours/host/one/${name}`)))).toEqual([
      '67108864',
      '0',
      '32',
      '50000 100000',
    ]);
    expect(await groups.memoryEvents('one')).toEqual({ kills: 2, atLimit: true });
    await lay('ours/host/one', { 'cpu.stat': 'usage_usec 1500\nuser_usec 1000\n' });
    expect(await groups.processorMs('one')).toBe(1.5);
    expect(await groups.names()).toEqual(['one']);
  });
});

describe('control groups of version 1', () => {
  test('has a directory for each controller, and works without a count of swap', async () => {
    for (const controller of ['memory', 'pids', 'cpu']) await lay(controller, { 'cgroup.procs': '' });
    await lay('memory/ours/one', { 'memory.limit_in_bytes': '', 'memory.oom_control': 'under_oom 0\noom_kill 7\n' });
    await lay('pids/ours/one', { 'pids.max': '' });
    await lay('cpu/ours/one', { 'cpu.cfs_period_us': '', 'cpu.cfs_quota_us': '' });
    const groups = new Version1(top, 'ours');
    expect(await groups.create('one', limits)).toEqual([
      `memory=${top}/memory/ours/one`,
      `pids=${top}/pids/ours/one`,
      `cpu=${top}/cpu/ours/one`,
    ]);
    expect([
      await read('memory/ours/one/memory.limit_in_bytes'),
      await read('pids/ours/one/pids.max'),
      await read('cpu/ours/one/cpu.cfs_period_us'),
      await read('cpu/ours/one/cpu.cfs_quota_us'),
    ]).toEqual(['67108864', '32', '100000', '50000']);
    await lay('memory/ours/one', { 'memory.max_usage_in_bytes': '50000000\n' });
    expect(await groups.memoryEvents('one')).toEqual({ kills: 7, atLimit: false });
    await lay('memory/ours/one', { 'memory.max_usage_in_bytes': '67100672\n' });
    expect(await groups.memoryEvents('one')).toEqual({ kills: 7, atLimit: true });
    expect(await groups.processorMs('one')).toBeUndefined();
    await lay('cpu/ours/one', { 'cpuacct.usage': '2500000\n' });
    expect(await groups.processorMs('one')).toBe(2.5);
  });

  test('counts processor time in a directory of its own where the kernel has one', async () => {
    for (const controller of ['memory', 'pids', 'cpu,cpuacct', 'apart']) await lay(controller, { 'cgroup.procs': '' });
    await lay('memory/ours/one', { 'memory.limit_in_bytes': '' });
    await lay('pids/ours/one', { 'pids.max': '' });
    await lay('cpu,cpuacct/ours/one', {
      'cpu.cfs_period_us': '',
      'cpu.cfs_quota_us': '',
      'cpuacct.usage': '1000000\n',
    });
    await lay('apart/ours/one', { 'cpuacct.usage': '3000000\n' });
    await symlink('cpu,cpuacct', join(top, 'cpu'));
    const directories = ['memory', 'pids', 'cpu'].map((name) => `${name}=${top}/${name}/ours/one`);
    for (const [target, more, ms] of [
      ['cpu,cpuacct', [], 1],
      ['apart', [`cpuacct=${top}/cpuacct/ours/one`], 3],
    ] as const) {
      await symlink(target, join(top, 'cpuacct'));
      const groups = new Version1(top, 'ours');
      expect(await groups.create('one', limits)).toEqual([...directories, ...more]);
      expect(await groups.processorMs('one')).toBe(ms);
      await rm(join(top, 'cpuacct'));
    }
  });
});

describe('openControlGroups', () => {
  test('returns the reason, and changes nothing, when the worker cannot use control groups', async () => {
    expect(await openControlGroups(top, 'ours')).toContain('there is no control group for memory');
    await lay('', { 'cgroup.controllers': 'cpu memory pids\n' });
    expect(await openControlGroups(top, 'ours')).toContain('cgroup.subtree_control');
    expect(await readFile(join(top, 'ours'), 'utf8').catch((error: NodeJS.ErrnoException) => error.code)).toBe(
      'ENOENT',
    );
  });
});
