import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from '@shellfleet/client';
import { recordKey, sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { type InspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { md5 } from '../support/md5.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// Promise: stdin reaches its command once and whole, also when a worker or Redis dies in between. Only the death of the
// streaming process ends it.

/** Duration of the outage itself. No condition tells the test when it is over. */
const AWAY_MS = 3_000;
const bytes = randomBytes(50_000_000);
/** Script that reads slowly, so that faults happen in the middle. */
const SCRIPT =
  '{ i=0; while [ $i -lt 40 ]; do head -c 1000000; sleep 0.05; i=$((i+1)); done; cat; } | md5sum | cut -c1-32';

interface OwnFleet extends InspectedFleet {
  redis: OwnRedis;
}

/** Starts a fleet with a Redis of its own, for one test. */
async function start(transport: 'socket' | 'attach'): Promise<OwnFleet> {
  await using parts = new AsyncDisposableStack();
  const redis = parts.use(await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always'));
  const own = parts.use(await startInspectedFleet({ redisUrl: redis.url, transport }));
  const started = parts.move();
  return { ...own, redis, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Waits until the shell has received at least `least` bytes of the command's stdin. */
function untilTaken({ stack, redis }: OwnFleet, command: Command, least: number): Promise<unknown> {
  const keys = sessionKeys(stack.keyspace, 'default', command.sessionId);
  const record = recordKey(keys, command.id.slice(command.sessionId.length + 1));
  return until(
    async () => Number(await redis.redis.hget(record, 'taken')),
    (taken) => taken >= least,
    60_000,
  );
}

// These tests mostly wait, so they run at the same time.
describe.concurrent.each(['socket', 'attach'] as const)('a worker killed with SIGKILL over %s', (transport) => {
  test('during a streamed stdin is followed by a worker that continues at the same byte', async () => {
    await using own = await start(transport);
    const { stack, worker, inspect } = own;
    const session = await stack.fleet.session('adopted');
    const command = await session.submit(SCRIPT, { stdin: bytes, timeoutMs: 100_000 });
    for (const least of [2_000_000, 10_000_000, 20_000_000]) {
      await untilTaken(own, command, least);
      await worker.kill();
      await worker.start();
    }
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: `${md5(bytes)}\n` });
    expect(await inspect.broken('adopted', [command.id])).toEqual([]);
  });

  test('leaves an open stdin open: writes wait for the next worker', async () => {
    await using own = await start(transport);
    const { stack, worker } = own;
    const session = await stack.fleet.session('open');
    const command = await session.submit('cat', { stdin: { open: true }, timeoutMs: 100_000 });
    await command.write('before\n');
    await untilTaken(own, command, 7);
    await worker.kill();
    await command.write('meanwhile\n');
    await worker.start();
    await command.write('after\n');
    await command.closeStdin();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'before\nmeanwhile\nafter\n' });
  });
});

describe.concurrent.each([
  [
    'does not answer (SIGSTOP)',
    { away: async ({ redis }: OwnFleet) => redis.freeze(), back: async ({ redis }: OwnFleet) => redis.thaw() },
  ],
  [
    'is killed and started again',
    { away: ({ redis }: OwnFleet) => redis.kill(), back: ({ redis }: OwnFleet) => redis.start() },
  ],
])('Redis that %s for three seconds', (_, { away, back }) => {
  test('only delays a streamed stdin', async () => {
    await using own = await start('socket');
    const { stack, inspect } = own;
    const session = await stack.fleet.session('away');
    const command = await session.submit(SCRIPT, { stdin: bytes, timeoutMs: 100_000 });
    await untilTaken(own, command, 10_000_000);
    await away(own);
    await delay(AWAY_MS);
    await back(own);
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: `${md5(bytes)}\n` });
    expect(await inspect.broken('away', [command.id])).toEqual([]);
  });

  test('delays a write to an open stdin, which is made once', async () => {
    await using own = await start('socket');
    const { stack } = own;
    const session = await stack.fleet.session('away');
    const command = await session.submit('cat', { stdin: { open: true }, timeoutMs: 100_000 });
    await command.write('before\n');
    await untilTaken(own, command, 7);
    await away(own);
    const written = command.write('meanwhile\n');
    const closed = command.closeStdin();
    await delay(AWAY_MS);
    await back(own);
    await Promise.all([written, closed]);
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'before\nmeanwhile\n' });
  });
});
