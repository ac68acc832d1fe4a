import { randomBytes } from 'node:crypto';
import type { Command } from '@shellfleet/client';
import { recordKey, sessionKeys } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FleetInspector, inspectFleet } from '../support/inspect-fleet.ts';
import { md5 } from '../support/md5.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: what is written to a command's stdin reaches it once and whole, whoever dies or goes away in between, but for who streams it.

const bytes = randomBytes(50_000_000);
/** Takes its time, so that there is a middle. */
const SCRIPT =
  '{ i=0; while [ $i -lt 40 ]; do head -c 1000000; sleep 0.05; i=$((i+1)); done; cat; } | md5sum | cut -c1-32';

let redis: OwnRedis;
let stack: TestFleet;
let inspect: FleetInspector;

beforeEach(async () => {
  redis = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always');
});
afterEach(async () => {
  await stack?.[Symbol.asyncDispose]();
  expect(await inspect.containers()).toEqual([]);
  await inspect[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

async function start(transport: 'socket' | 'attach'): Promise<void> {
  stack = await startFleet({ redisUrl: redis.url, transport });
  inspect = inspectFleet(stack);
}

/** Until the shell was given so many bytes of the command's stdin. */
function untilTaken(command: Command, least: number): Promise<unknown> {
  const keys = sessionKeys(stack.namespace, 'default', command.sessionId);
  const record = recordKey(keys, command.id.slice(command.sessionId.length + 1));
  return until(
    async () => Number(await redis.redis.hget(record, 'taken')),
    (taken) => taken >= least,
    60_000,
  );
}

describe.each(['socket', 'attach'] as const)('A worker killed with SIGKILL, over %s', (transport) => {
  test('in the middle of a streamed stdin is followed by one that goes on exactly there', async () => {
    await start(transport);
    const [worker] = stack.workers;
    const session = await stack.fleet.session('adopted');
    const command = await session.submit(SCRIPT, { stdin: bytes, timeoutMs: 100_000 });
    for (const least of [2_000_000, 10_000_000, 20_000_000]) {
      await untilTaken(command, least);
      await worker?.kill();
      await worker?.start();
    }
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: `${md5(bytes)}\n` });
    expect(await inspect.broken('adopted', [command.id])).toEqual([]);
  });

  test('leaves an open stdin open: what is written meanwhile waits for the next', async () => {
    await start(transport);
    const [worker] = stack.workers;
    const session = await stack.fleet.session('open');
    const command = await session.submit('cat', { stdin: 'open', timeoutMs: 100_000 });
    await command.write('before\n');
    await untilTaken(command, 7);
    await worker?.kill();
    await command.write('meanwhile\n');
    await worker?.start();
    await command.write('after\n');
    await command.closeStdin();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'before\nmeanwhile\nafter\n' });
  });
});

describe.each([
  ['does not answer (SIGSTOP)', { away: async () => redis.freeze(), back: async () => redis.thaw() }],
  ['is killed and started again', { away: () => redis.kill(), back: () => redis.start() }],
])('Redis that %s for three seconds', (_, { away, back }) => {
  test('in the middle of a streamed stdin delays it, and no more', async () => {
    await start('socket');
    const session = await stack.fleet.session('away');
    const command = await session.submit(SCRIPT, { stdin: bytes, timeoutMs: 100_000 });
    await untilTaken(command, 10_000_000);
    await away();
    await new Promise((resolve) => setTimeout(resolve, 3_000)); // the length of the absence, nothing to wait for
    await back();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: `${md5(bytes)}\n` });
    expect(await inspect.broken('away', [command.id])).toEqual([]);
  });

  test('delays a write to an open stdin, which is made once', async () => {
    await start('socket');
    const session = await stack.fleet.session('away');
    const command = await session.submit('cat', { stdin: 'open', timeoutMs: 100_000 });
    await command.write('before\n');
    await untilTaken(command, 7);
    await away();
    const written = command.write('meanwhile\n');
    const closed = command.closeStdin();
    await new Promise((resolve) => setTimeout(resolve, 3_000)); // the length of the absence, nothing to wait for
    await back();
    await Promise.all([written, closed]);
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'before\nmeanwhile\n' });
  });
});
