import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { outcomesOf } from '../support/invariants.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when Redis comes back with an older state (a restored backup, a failover to a replica that lagged, a lost
// tail), commands that this host has begun since then do not begin again, even if their session was closed and their
// sandbox is gone.

let redis: OwnRedis;
let stack: TestFleet;
let worker: TestWorker;
let inspect: FleetInspector;
let directory: string;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'sf-restored-'));
  mkdirSync(join(directory, 'ws'));
  chmodSync(join(directory, 'ws'), 0o777);
  redis = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always');
  const env = { SHELLFLEET_WORKSPACES: directory };
  ({ stack, worker, inspect } = await startInspectedFleet({ redisUrl: redis.url, env }));
});
afterEach(async () => {
  await endInspectedFleet(stack, inspect).finally(() => redis[Symbol.asyncDispose]());
  rmSync(directory, { recursive: true, force: true });
});

describe('a command in a Redis that is restored from a copy', () => {
  test.each(['the same worker', 'a restarted worker'])(
    'does not run again on %s when it ran after the copy, but is lost',
    async (which) => {
      const session = await stack.fleet.session('x', { workspace: join(directory, 'ws') });
      worker.signal('SIGSTOP');
      const script = 'echo ran >> /workspace/count';
      const command = await session.submit(script);
      const again = await session.submit(script, { retry: 'idempotent' });
      const dir = ((await redis.redis.config('GET', 'dir')) as string[])[1] as string;
      cpSync(dir, join(directory, 'copy'), { recursive: true });
      worker.signal('SIGCONT');
      expect([(await command.result()).outcome, (await again.result()).outcome]).toEqual(['success', 'success']);
      await session.close();
      if (which === 'a restarted worker') await worker.kill();
      await redis.kill();
      rmSync(dir, { recursive: true });
      cpSync(join(directory, 'copy'), dir, { recursive: true });
      await redis.start();
      if (which === 'a restarted worker') await worker.start();
      const outcomes = await until(
        async () => outcomesOf(await inspect.events('x')),
        (all) => all.size === 2,
      );
      expect([...outcomes.values()]).toEqual(['lost', 'success']);
      // The command ran once before, and the idempotent one before and after.
      expect(readFileSync(join(directory, 'ws', 'count'), 'utf8')).toBe('ran\nran\nran\n');
      expect(await inspect.broken('x', [command.id, again.id])).toEqual([]);
    },
  );

  test('ends with its whole Result when Redis lost stored output, which the stream counts', async () => {
    const session = await stack.fleet.session('output', { workspace: join(directory, 'ws') });
    const steps = [1, 2].map((step) => `echo ${step}; until [ -e step${step} ]; do sleep 0.05; done`);
    const command = await session.submit(`echo ran >> count; ${steps.join('; ')}; echo 3`, { timeoutMs: 60_000 });
    const printed = (text: string) =>
      until(
        async () => {
          let output = '';
          for await (const chunk of command.output({ follow: false })) output += chunk.text;
          return output;
        },
        (output) => output === text,
      );
    await printed('1\n');
    const dir = ((await redis.redis.config('GET', 'dir')) as string[])[1] as string;
    cpSync(dir, join(directory, 'copy'), { recursive: true });
    writeFileSync(join(directory, 'ws', 'step1'), '');
    await printed('1\n2\n');
    await redis.kill();
    rmSync(dir, { recursive: true });
    cpSync(join(directory, 'copy'), dir, { recursive: true });
    await redis.start();
    writeFileSync(join(directory, 'ws', 'step2'), '');
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: '1\n2\n3\n' });
    const chunks = [];
    for await (const { text, omittedBytes } of command.output({ follow: false })) chunks.push({ text, omittedBytes });
    expect(chunks).toEqual([{ text: '1\n' }, { text: '3\n', omittedBytes: 2 }]);
    expect((await session.run('cat count')).stdout).toBe('ran\n');
    expect(await brokenBesideGaps('output', command.id)).toEqual([]);
  });

  test('is never reported as a cancellation when its start is gone from Redis', async () => {
    const session = await stack.fleet.session('start', { workspace: join(directory, 'ws') });
    await session.run('true');
    worker.signal('SIGSTOP');
    const script = 'echo ran >> count; echo 1; until [ -e step1 ]; do sleep 0.05; done; echo 2; sleep 1; echo 3';
    const command = await session.submit(script, { timeoutMs: 60_000 });
    const dir = ((await redis.redis.config('GET', 'dir')) as string[])[1] as string;
    cpSync(dir, join(directory, 'copy'), { recursive: true });
    worker.signal('SIGCONT');
    await until(
      () => existsSync(join(directory, 'ws', 'count')),
      (begun) => begun,
    );
    await redis.kill();
    rmSync(dir, { recursive: true });
    cpSync(join(directory, 'copy'), dir, { recursive: true });
    await redis.start();
    writeFileSync(join(directory, 'ws', 'step1'), '');
    expect((await command.result()).outcome).toMatch(/^(lost|success)$/);
    expect((await session.run('cat count')).stdout).toBe('ran\n');
    expect(await brokenBesideGaps('start', command.id)).toEqual([]);
  });
});

/**
 * Returns the broken invariants of a session, except gaps in the output. Such gaps are due to the lost state, and
 * readers receive the number of missing bytes.
 */
async function brokenBesideGaps(session: string, commandId: string): Promise<string[]> {
  return (await inspect.broken(session, [commandId])).filter((problem) => !/ where \d+ follows$/.test(problem));
}
