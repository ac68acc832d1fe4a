import { endCall, takeCall } from '@shellfleet/placement';
import { type FleetKeys, fleetKeys, toolQueue } from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';

let own: OwnRedis;
let redis: Redis;
let fleet: FleetKeys;
let namespaces = 0;

beforeAll(async () => {
  own = await startOwnRedis();
  redis = (await connectRedis(own.url, 'host', 'test')).redis;
});
afterAll(async () => {
  redis?.disconnect();
  await own?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  fleet = fleetKeys(`tools-${++namespaces}`);
});

const keysOf = (tenant: string) => `${fleet.tools}:${toolQueue('add', tenant)}:`;

/** Adds a call as BullMQ does. */
const add = (tenant: string, id: string) =>
  redis
    .multi()
    .lpush(fleet.toolsNoted, toolQueue('add', tenant))
    .hset(`${keysOf(tenant)}${id}`, { data: '{}', timestamp: Date.now() })
    .lpush(`${keysOf(tenant)}wait`, id)
    .exec();

const take = async () => (await takeCall(redis, fleet, { tool: 'add', host: 'h1', lockMs: 60_000 }))?.id;

describe('the queues of a tool', () => {
  test('give a host the calls of their tenants in turn', async () => {
    for (const id of ['a1', 'a2', 'b1', 'b2']) await add(id.charAt(0), id);
    const [first, second] = [await take(), await take()];
    expect([first, second].sort()).toEqual(['a1', 'b1']);
    expect([await take(), await take()].sort()).toEqual(['a2', 'b2']);
    expect(await take()).toBeUndefined();
  });

  test('keep a call that another host holds', async () => {
    await add('a', 'a1');
    const held = await takeCall(redis, fleet, { tool: 'add', host: 'h1', lockMs: 60_000 });
    if (held === undefined) throw new Error('No call waits.');
    await endCall(redis, fleet, held, 'h2');
    expect(await redis.lrange(`${keysOf('a')}active`, 0, -1)).toEqual(['a1']);
    await endCall(redis, fleet, held, 'h1');
    expect(await redis.exists(`${keysOf('a')}active`, `${keysOf('a')}a1`, `${keysOf('a')}a1:lock`)).toBe(0);
  });

  test.each<[string, (keys: string) => Promise<unknown>]>([
    ['a text for its waiting calls', (keys) => redis.set(`${keys}wait`, 'x')],
    ['a text for its active calls', (keys) => redis.set(`${keys}active`, 'x')],
    ['a text for a call', (keys) => redis.set(`${keys}junk1`, 'x')],
    ['a count that is no number', (keys) => redis.hset(`${keys}junk1`, 'ats', 'x')],
  ])('serve other tenants although a tenant has written %s', async (_what, write) => {
    for (const tenant of ['a', 'junk', 'z']) await add(tenant, `${tenant}1`);
    await write(keysOf('junk'));
    const taken = [await take(), await take(), await take()];
    expect(taken).toEqual(expect.arrayContaining(['a1', 'z1']));
  });
});
