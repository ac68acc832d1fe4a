import { type SessionKeys, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LostSessions } from './lost-sessions.ts';

beforeEach(() => vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => vi.useRealTimers());

const keys: SessionKeys = sessionKeys('ns:aaaaaaaaaaaa', 't', 's');

/** Sets up a Redis without sessions. `changedAt` and `wasRestoring` describe how it lost its data. */
function setUp(changedAt?: number, wasRestoring = false) {
  const state = {
    stored: [null, null, null] as (string | null)[],
    identity: 'aaaaaaaaaaaa' as string | null,
    mark: false,
  };
  const calls: string[] = [];
  const called = <T>(name: string, reply: () => T) => {
    calls.push(name);
    return Promise.resolve(reply());
  };
  const redis = {
    hmget: () => called('hmget', () => state.stored),
    mget: () => called('mget', () => [state.identity, state.mark ? '1' : null]),
    set: () => called('set', () => 'OK'),
  } as unknown as Redis;
  const lost = new LostSessions({
    redis: () => redis,
    namespace: keys.namespace,
    history: { changedAt },
    wasRestoring,
  });
  return { lost, state, calls };
}

/** Returns the time in ms until a promise resolves. */
async function msUntil(promise: Promise<void>): Promise<number> {
  const from = performance.now();
  let at: number | undefined;
  void promise.then(() => {
    at = performance.now() - from;
  });
  await vi.advanceTimersByTimeAsync(20_000);
  return at ?? Number.NaN;
}

describe('generation', () => {
  test.each([
    ['was never replaced', undefined],
    ['was replaced 5 s ago', 995_000],
  ])('begins without a call to Redis that %s', async (_when, changedAt) => {
    const { lost, calls } = setUp(changedAt);
    expect([await msUntil(lost.beforeGeneration(keys)), calls]).toEqual([0, []]);
  });

  test('begins at once when Redis was replaced without a loss', async () => {
    const { lost, calls } = setUp(999_000);
    expect([await msUntil(lost.beforeGeneration(keys)), calls]).toEqual([0, ['mget']]);
  });

  test.each(['identity', 'mark'] as const)(
    'waits until 5 s after a replacement that the %s of the fleet shows',
    async (by) => {
      const { lost, state } = setUp(999_000);
      if (by === 'identity') state.identity = null;
      else state.mark = true;
      expect(await msUntil(lost.beforeGeneration(keys))).toBe(4_000);
    },
  );

  test('waits in a view that was opened while Redis was being restored', async () => {
    const { lost, state } = setUp(undefined, true);
    state.mark = true;
    expect(await msUntil(lost.beforeGeneration(keys))).toBe(5_000);
  });

  test.each([
    ['open', '7', 200],
    ['closed', '7', 5_000],
  ])('whose id appears as %s (generation %s) begins after %i ms', async (phase, generation, ms) => {
    const { lost, state } = setUp(1_000_000);
    state.mark = true;
    setTimeout(() => Object.assign(state, { stored: [phase, generation, 'h1'] }), 150);
    expect(await msUntil(lost.beforeGeneration(keys))).toBe(ms);
  });
});

describe('entry whose generation Redis lost', () => {
  test.each([
    ['7', 200],
    ['8', 200],
    ['6', 5_000],
  ])('of generation 7, with generation %s in Redis, is submitted after %i ms', async (generation, ms) => {
    const { lost, state, calls } = setUp(1_000_000);
    setTimeout(() => Object.assign(state, { stored: ['open', generation, 'h1'] }), 150);
    expect(await msUntil(lost.noticed(keys, '7'))).toBe(ms);
    expect(calls[0]).toBe('set');
  });

  test('is submitted in the order in which the entries of the generation began to wait', async () => {
    const { lost } = setUp(1_000_000);
    const order: number[] = [];
    const first = lost.noticed(keys, '7').then(() => order.push(1));
    await vi.advanceTimersByTimeAsync(150);
    const second = lost.noticed(keys, '7').then(() => order.push(2));
    await vi.advanceTimersByTimeAsync(5_000);
    await Promise.all([first, second]);
    expect(order).toEqual([1, 2]);
  });

  test('waits no longer than 5 s when the wall clock was set back', async () => {
    const { lost } = setUp(5_000_000);
    expect(await msUntil(lost.noticed(keys, '7'))).toBe(5_000);
  });
});
