import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openStateDirectory, readSealKey } from './state-directory.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'state-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true });
});

describe('the state directory of a host', () => {
  test('keeps the id and key of the host for its next process', async () => {
    const first = await openStateDirectory(directory, undefined);
    await first.close();
    const second = await openStateDirectory(directory, undefined);
    expect([second.hostId, second.hostKey]).toEqual([first.hostId, first.hostKey]);
    expect(second.hostId).toMatch(/^host-[0-9a-f]{12}$/);
    expect(second.hostKey).toHaveLength(32);
    await second.close();
  });

  test('gives two hosts of one machine different keys', async () => {
    await using one = await openStateDirectory(directory, 'one');
    await using two = await openStateDirectory(directory, 'two');
    expect([one.hostId, two.hostId]).toEqual(['one', 'two']);
    expect(one.hostKey).not.toEqual(two.hostKey);
    expect(one.stateDirectoryId).toMatch(/^[0-9a-f]{16}$/);
    expect(two.stateDirectoryId).toBe(one.stateDirectoryId);
  });

  test('STATE-1: refuses a second worker with the same id while the first runs', async () => {
    const first = await openStateDirectory(directory, 'one');
    await expect(openStateDirectory(directory, 'one')).rejects.toMatchObject({ code: 'HOST_ID_TAKEN' });
    await first.close();
    await using second = await openStateDirectory(directory, 'one');
    expect(second.hostId).toBe('one');
  });

  test('STATE-1: lets a second worker wait a moment while the first is ending', async () => {
    const first = await openStateDirectory(directory, 'one');
    const opening = openStateDirectory(directory, 'one');
    await new Promise((resolve) => setTimeout(resolve, 200));
    await first.close();
    await using second = await opening;
    expect(second.hostId).toBe('one');
  });

  test('STATE-1: is free at once after a worker was killed with SIGKILL', async () => {
    const module = fileURLToPath(new URL('./state-directory.ts', import.meta.url));
    const script = `const { openStateDirectory } = await import(${JSON.stringify(module)});
    await openStateDirectory(${JSON.stringify(directory)}, 'one'); console.log('open'); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--conditions=@shellfleet/source', '--input-type=module', '-e', script]);
    await once(child.stdout, 'data');
    await expect(openStateDirectory(directory, 'one')).rejects.toMatchObject({ code: 'HOST_ID_TAKEN' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    await using next = await openStateDirectory(directory, 'one');
    expect(next.hostId).toBe('one');
  });

  test('STATE-1: has one holder even without the program flock', async () => {
    vi.stubEnv('PATH', '/nonexistent');
    const first = await openStateDirectory(directory, 'one');
    await expect(openStateDirectory(directory, 'one')).rejects.toMatchObject({ code: 'HOST_ID_TAKEN' });
    await first.close();
    await using second = await openStateDirectory(directory, 'one');
    expect(second.hostId).toBe('one');
  });

  test('STATE-2: creates keys once, readable by their owner alone', async () => {
    const keys = await Promise.all(['a', 'b', 'c'].map((key) => readSealKey(directory, () => key)));
    expect(new Set(keys).size).toBe(1);
    expect((await stat(join(directory, 'seal-key'))).mode & 0o777).toBe(0o600);
  });
});
