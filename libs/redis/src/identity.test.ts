import { Command, type Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { followRedisIdentity } from './identity.ts';

beforeEach(() => vi.useFakeTimers({ now: 1_000 }));
afterEach(() => vi.useRealTimers());

const info = (fields: Record<string, string>) =>
  `# Server\r\n${Object.entries(fields)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')}`;

/** Returns a connection, its history, and `asks`, which sends INFO as ioredis does and gets the given reply. */
function setUp() {
  const redis = { sendCommand: (command: Command) => command.promise } as unknown as Redis;
  const history = followRedisIdentity(redis);
  const asks = async (fields: Record<string, string> | Error) => {
    vi.advanceTimersByTime(1_000);
    const command = new Command('info');
    const reply = redis.sendCommand(command);
    if (fields instanceof Error) command.reject(fields);
    else command.resolve(info(fields));
    await Promise.resolve(reply).catch(() => {});
    return { ...history };
  };
  return { history, asks };
}

const FIRST = { run_id: 'a', master_replid: 'r' };
const IDENTITY = { runId: 'a', replicationId: 'r' };

describe('the history of a Redis', () => {
  test('starts with the first connection, which is no change', async () => {
    const { history, asks } = setUp();
    expect(history).toEqual({ identity: undefined, changes: 0, changedAt: undefined });
    expect(await asks(FIRST)).toEqual({ identity: IDENTITY, changes: 0, changedAt: undefined });
  });

  test('has no change after a reconnection to the same Redis', async () => {
    const { asks } = setUp();
    await asks(FIRST);
    expect(await asks(FIRST)).toEqual({ identity: IDENTITY, changes: 0, changedAt: undefined });
  });

  test.each([
    ['another process', { run_id: 'b', master_replid: 'r' }],
    ['another replication history', { run_id: 'a', master_replid: 's' }],
  ])('records the time of a change: %s', async (_title, fields) => {
    const { asks } = setUp();
    await asks(FIRST);
    const identity = { runId: fields.run_id, replicationId: fields.master_replid };
    expect(await asks(fields)).toEqual({ identity, changes: 1, changedAt: 3_000 });
    expect(await asks(FIRST)).toEqual({ identity: IDENTITY, changes: 2, changedAt: 4_000 });
  });

  test.each([
    ['loads its data', { run_id: 'b', master_replid: 's', loading: '1' }],
    ['reports no identity', { redis_version: '7.2.4' }],
    ['refuses the question', new Error('NOPERM')],
  ])('ignores a Redis that %s', async (_title, reply) => {
    const { asks } = setUp();
    await asks(FIRST);
    expect(await asks(reply)).toEqual({ identity: IDENTITY, changes: 0, changedAt: undefined });
  });
});
