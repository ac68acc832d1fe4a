import { execFile } from 'node:child_process';
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Result } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { isRoot } from '../support/host-leftovers.ts';
import { reasonToWait } from '../support/reason-to-wait.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

const MIB = 2 ** 20;
const run = promisify(execFile);
const eventually = { timeout: 30_000, interval: 100 };

describe('a container that fills the disk', () => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ env: { SHELLFLEET_DISK_BYTES: String(128 * MIB) } });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test('counts for the quota of its tenant, whose commands are refused until there is room', async () => {
    const fleet = await stack.connect({ tenant: 'writes' });
    const limit = 8 * MIB;
    await fleet.applyConfiguration({ tenants: [{ name: 'writes', maxDiskBytes: limit }] });
    const [filled, other] = await Promise.all(['filled', 'other'].map((id) => fleet.session(id)));
    const running = await other?.submit('until [ -e go ]; do sleep 0.1; done; echo went');
    await filled?.run('head -c 30M /dev/zero > mine');
    const submit = () => filled?.submit('true').then(({ id }) => id);
    const isRefused = async () => (await submit()?.catch(({ code }) => code)) === 'QUOTA_EXCEEDED';
    await expect.poll(isRefused, { ...eventually, timeout: 60_000 }).toBe(true);
    await expect(submit()).rejects.toMatchObject({ context: { quota: 'maxDiskBytes', limit, retryAfterMs: 10_000 } });
    expect((await fleet.tenants()).find(({ name }) => name === 'writes')?.diskBytes).toBeGreaterThanOrEqual(limit);
    await other?.files.write('/workspace/go', '');
    expect(await running?.result()).toMatchObject({ stdout: 'went\n' });
    await filled?.close();
    await expect
      .poll(() => other?.run('echo room').catch(({ code }) => code), eventually)
      .toMatchObject({ stdout: 'room\n' });
    await fleet.applyConfiguration({});
  });

  test('is ended: the command reports the disk, and the session gets a new shell', async () => {
    const other = await stack.fleet.session('other');
    await other.run('kept=yes; head -c 20M /dev/zero > mine');
    const session = await stack.fleet.session('fills');
    const result = await session.run('echo begun; head -c 400M /dev/zero > big; sleep 60');
    expect(result).toMatchObject({
      outcome: 'error',
      reason: 'disk',
      stdout: 'begun\n',
      error: {
        code: 'CONTAINER_LOST',
        context: { reason: 'disk' },
        message: expect.stringContaining('filled the disk'),
      },
    });
    expect(await session.run('ls')).toMatchObject({
      outcome: 'success',
      stdout: '',
      shell: { state: 'lost', reason: expect.stringContaining('filled the disk'), epoch: 2 },
    });
    expect((await other.run('echo $kept; ls')).stdout).toBe('yes\nmine\n');
  });

  test('is ended also when a background process fills it', async () => {
    const session = await stack.fleet.session('background');
    await session.run('(sleep 1; head -c 400M /dev/zero > big; sleep 60) &');
    const results: Result[] = [];
    const hasNewShell = async () => results[results.push(await session.run('true')) - 1]?.shell.epoch === 2;
    await expect.poll(hasNewShell, eventually).toBe(true);
    expect(results.at(-1)?.shell).toMatchObject({ state: 'lost', reason: expect.stringContaining('filled the disk') });
  });

  test('makes sessions with limits.diskBytes wait for a host that can enforce such a limit', async () => {
    expect(await reasonToWait(stack.fleet, 'asks', { limits: { diskBytes: 2 ** 30 } })).toContain('limits.diskBytes: ');
  });
});

describe.runIf(isRoot)('a host whose state directory is full', () => {
  let directory: string;
  let stack: TestFleet;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'full-'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', directory]);
    const env = { SHELLFLEET_STATE_DIR: directory, SHELLFLEET_MIN_FREE_DISK: String(4 * MIB) };
    // The transport is attach, because an engine in another mount namespace does not see the new file system.
    stack = await startFleet({ transport: 'attach', env });
  });
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
    await run('umount', [directory]);
    await rm(directory, { recursive: true });
  });

  const fill = async () => {
    const { bavail, bsize } = await statfs(directory);
    await writeFile(join(directory, 'filler'), Buffer.alloc(bavail * bsize)).catch(() => {});
    expect((await statfs(directory)).bavail).toBe(0);
  };
  const problems = async () => (await stack.fleet.hosts())[0]?.problems ?? [];

  test('takes no new session, finishes its work, survives a restart, and recovers with room', async () => {
    const session = await stack.fleet.session('before', { output: { streamBytes: 100_000, maxBytes: 1_000 } });
    await session.run('kept=yes');
    await fill();
    await expect
      .poll(problems, eventually)
      .toEqual([
        expect.stringMatching(/^The disk of .* has 0 MiB free of 24 MiB; SHELLFLEET_MIN_FREE_DISK is 4 MiB\.$/),
      ]);
    const waiting = await (await stack.fleet.session('after')).submit('echo late');
    const flood = await session.submit('seq 1 300000; echo $kept');
    expect(await flood.result()).toMatchObject({
      outcome: 'success',
      stdout: expect.stringMatching(/\nyes\n$/),
      totals: { stdoutLines: 300_001 },
    });
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    expect(await session.run('echo $kept')).toEqual(expectedResult('before', { stdout: 'yes\n' }));
    expect((await stack.fleet.session('after').then((late) => late.info())).state).toBe('queued');
    expect(stack.workers[0]?.log.match(/"host\.short"/g)).toHaveLength(2);
    await rm(join(directory, 'filler'));
    expect(await waiting.result()).toMatchObject({ outcome: 'success', stdout: 'late\n' });
    await expect.poll(problems, eventually).toEqual([]);
  });
});
