import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isPidFileLive, startDetached, stopByPidFile, writePidFile } from './background-process.ts';
import { endProcess, isRunning, readProcess, recordProcess } from './live-process.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-process-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** Starts a process that ignores SIGTERM and reports it. */
async function startStubborn() {
  const script = 'process.on("SIGTERM", () => {}); process.stdout.write("on"); setInterval(() => {}, 1000)';
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  return { child, pid: child.pid ?? 0 };
}

describe('a recorded process', () => {
  test('is recognized by its pid, start time and program', async () => {
    const { child, pid } = await startStubborn();
    const recorded = recordProcess(pid);
    expect(isRunning(recorded, ['node'])).toBe(true);
    expect(isRunning(recorded, ['shellfleet-worker'])).toBe(false);
    expect(isRunning({ ...recorded, startedAt: `${recorded.startedAt}1` }, ['node'])).toBe(false);
    expect(isRunning({ ...recorded, pid: process.pid }, ['node'])).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isRunning(recorded, ['node'])).toBe(false);
  });

  test.each(['linux', 'darwin'] as const)('is read with its start time and command as on %s', (platform) => {
    const [first, again, parent] = [process.pid, process.pid, process.ppid].map((pid) => readProcess(pid, platform));
    expect(first).toEqual({ startedAt: expect.stringMatching(/\d\d/), command: expect.stringMatching(/./) });
    expect(again).toEqual(first);
    expect(parent?.command).toMatch(/./);
    if (platform === 'darwin') expect(Number.isNaN(Date.parse(first?.startedAt ?? ''))).toBe(false);
  });

  test.each([0, -1, Number.NaN, 2 ** 31, 1.5])('is not found under the number %d', (pid) => {
    for (const platform of ['linux', 'darwin'] as const) expect(readProcess(pid, platform)).toBeUndefined();
  });

  test('is killed after the grace if it ignores SIGTERM; no other process is killed', async () => {
    const { child, pid } = await startStubborn();
    const how = { signal: 'SIGTERM', graceMs: 50 } as const;
    const recorded = recordProcess(pid);
    expect(await endProcess({ ...recorded, startedAt: 'unknown' }, ['node'], how)).toBe(false);
    expect(await endProcess(recorded, ['redis-server'], how)).toBe(false);
    expect(child.exitCode ?? child.signalCode).toBeNull();
    const ended = once(child, 'exit');
    expect(await endProcess(recorded, ['node'], how)).toBe(true);
    expect(await ended).toEqual([null, 'SIGKILL']);
  });

  test('is not ended by a pid file of another program or without a start time', async () => {
    const { child, pid } = await startStubborn();
    const pidPath = join(directory, 'redis.pid');
    const write = [
      () => writePidFile(pidPath, pid), // the pid of another program
      () => writeFile(pidPath, `${pid}\n`), // without a start time
      () => writeFile(pidPath, `${pid}\nSun Nov 22 15:34:00 2026\n`), // another start time
      () => writeFile(pidPath, 'garbage'),
    ];
    for (const [index, writeIt] of write.entries()) {
      await writeIt();
      expect(await stopByPidFile(pidPath, index === 0 ? 'redis-server' : 'node', 0)).toBe(false);
      await expect(stat(pidPath)).rejects.toThrow('ENOENT');
    }
    expect(child.exitCode ?? child.signalCode).toBeNull();
    child.kill('SIGKILL');
  });

  test('is ended by its pid file when detached, and absent when never started', async () => {
    const paths = { logPath: join(directory, 'log'), pidPath: join(directory, 'pid') };
    await startDetached('sleep', ['4321'], paths);
    expect(await isPidFileLive(paths.pidPath, 'sleep')).toBe(true);
    expect(await stopByPidFile(paths.pidPath, 'sleep')).toBe(true);
    expect(await isPidFileLive(paths.pidPath, 'sleep')).toBe(false);
    await expect(startDetached('/no/such/program', [], paths)).rejects.toThrow('ENOENT');
    expect(await isPidFileLive(paths.pidPath, 'program')).toBe(false);
  });
});
