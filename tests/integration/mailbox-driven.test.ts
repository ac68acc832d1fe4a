import { adopt, close, closeUndriven, open, renewDriver, submit } from '@shellfleet/mailbox';
import { driverKey } from '@shellfleet/protocol';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { connectTestRedis, newKeys, newSubmission, own, type TestRedis } from '../support/mailbox-session.ts';

// Sessions whose life ends with the process that drives them.

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

test('a driven session without work is closed by its owner once its driver is gone, and not before', async () => {
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
  // Twice, as after a lost reply.
  expect(await closeUndriven(owner, 'close')).toEqual({ type: 'closing' });
  expect(await closeUndriven(owner, 'close')).toEqual({ type: 'closing-before' });
  expect(await adopt(owner)).toMatchObject({ life: 'closing' });
  expect(await closeUndriven({ ...owner, host: 'other' }, 'close')).toEqual({ type: 'fenced' });
});

test('a driven session in which something waits stays without its driver', async () => {
  const { redis } = connected;
  const opened = await begin(true);
  if (opened.type !== 'created') throw new Error(`it is ${opened.type}`);
  await redis.del(driverKey(keys));
  await submit(redis, keys, newSubmission(opened.generation));
  expect(await closeUndriven(await own(redis, keys), 'close')).toEqual({ type: 'stays' });
});

test('the process that begins a life decides whether it is driven; each life anew', async () => {
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
