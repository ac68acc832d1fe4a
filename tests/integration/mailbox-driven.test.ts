import { adopt, close, closeUndriven, open, renewDriver, submit } from '@shellfleet/mailbox';
import { driverKey } from '@shellfleet/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectTestRedis, newKeys, newSubmission, own, type TestRedis } from '../support/mailbox-session.ts';

// Sessions whose generation ends with the process that drives them.

let connected: TestRedis;
let keys: ReturnType<typeof newKeys>;
beforeAll(async () => {
  connected = await connectTestRedis();
});
afterAll(() => connected[Symbol.asyncDispose]());
beforeEach(() => {
  keys = newKeys();
});

const begin = (driven: boolean) => open(connected.redis, keys, () => 'sealed', 'digest', 'any', undefined, driven);
const hasDriver = async () => (await connected.redis.exists(driverKey(keys))) === 1;

describe('a driven session', () => {
  test('is closed by its owner when it has neither work nor a driver', async () => {
    const { redis } = connected;
    await begin(true);
    const owner = await own(redis, keys);
    expect(await adopt(owner)).toMatchObject({ driven: true });
    expect(await closeUndriven(owner, 'close')).toEqual({ type: 'stays' });
    await redis.del(driverKey(keys));
    expect(await closeUndriven(owner, 'look')).toEqual({ type: 'undriven' });
    await renewDriver(redis, keys);
    expect(await closeUndriven(owner, 'close')).toEqual({ type: 'stays' });
    await redis.del(driverKey(keys));
    // The call is repeated, as after a lost reply.
    expect(await closeUndriven(owner, 'close')).toEqual({ type: 'closing' });
    expect(await closeUndriven(owner, 'close')).toEqual({ type: 'closing-before' });
    expect(await adopt(owner)).toMatchObject({ phase: 'closing' });
    expect(await closeUndriven({ ...owner, host: 'other' }, 'close')).toEqual({ type: 'fenced' });
  });

  test('stays open without its driver while an entry waits', async () => {
    const { redis } = connected;
    const opened = await begin(true);
    if (opened.type !== 'created') throw new Error(`it is ${opened.type}`);
    await redis.del(driverKey(keys));
    await submit(redis, keys, newSubmission(opened.generation));
    expect(await closeUndriven(await own(redis, keys), 'close')).toEqual({ type: 'stays' });
  });

  test('is driven only if the opener of its generation has requested it', async () => {
    const { redis } = connected;
    const opened = await begin(false);
    expect(await begin(true)).toMatchObject({ type: 'attached' });
    expect(await hasDriver()).toBe(false);
    const owner = await own(redis, keys);
    expect(await closeUndriven(owner, 'close')).toEqual({ type: 'stays' });
    await close(redis, keys, opened.type === 'created' ? opened.generation : '', true);
    expect(await begin(true)).toMatchObject({ type: 'created' });
    expect(await adopt(await own(redis, keys))).toMatchObject({ driven: true });
    await redis.del(driverKey(keys));
    expect(await begin(true)).toMatchObject({ type: 'attached' });
    expect(await hasDriver()).toBe(true);
  });
});
