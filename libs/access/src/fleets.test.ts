import type { Fleet } from '@shellfleet/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Fleets } from './fleets.ts';
import type { Principal } from './principal.ts';

const MINUTE_MS = 60_000;

let fleets: Fleets;
let connects: string[];
let closed: string[];
let failure: Error | undefined;
beforeEach(() => {
  vi.useFakeTimers();
  connects = [];
  closed = [];
  failure = undefined;
  fleets = new Fleets(async ({ tenant = '', caller }) => {
    const name = `${tenant}/${caller?.id}`;
    connects.push(name);
    if (failure !== undefined) throw failure;
    return { close: async () => void closed.push(name) } as unknown as Fleet;
  });
});
afterEach(async () => {
  await fleets[Symbol.asyncDispose]();
  vi.useRealTimers();
});

const who = (id: string, tenant = 'acme'): Pick<Principal, 'tenant' | 'caller'> => ({
  tenant,
  caller: { id, name: 'ci' },
});

describe('the fleets of a server', () => {
  // FLEETS-1
  test('are one for each tenant and caller, and have one timer together', async () => {
    const [first, same] = await Promise.all([fleets.borrow(who('a')), fleets.borrow(who('a'))]);
    expect(same.fleet).toBe(first.fleet);
    await fleets.borrow(who('a', 'other'));
    expect(connects).toEqual(['acme/a', 'other/a']);
    for (let number = 0; number < 1_000; number++) await fleets.borrow(who(`b${number}`));
    expect([fleets.size, vi.getTimerCount()]).toEqual([1_002, 1]);
  });

  // FLEETS-2
  test('are closed when nobody has used them for ten minutes', async () => {
    const borrowed = await fleets.borrow(who('a'));
    await vi.advanceTimersByTimeAsync(30 * MINUTE_MS);
    expect(closed).toEqual([]);
    borrowed[Symbol.dispose]();
    await vi.advanceTimersByTimeAsync(9 * MINUTE_MS);
    expect(closed).toEqual([]);
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
    expect([closed, fleets.size]).toEqual([['acme/a'], 0]);
  });

  test('stay open as long as a promise has not settled', async () => {
    const borrowed = await fleets.borrow(who('a'));
    const running = Promise.withResolvers<void>();
    borrowed.extendTo(running.promise);
    borrowed[Symbol.dispose]();
    await vi.advanceTimersByTimeAsync(30 * MINUTE_MS);
    expect(closed).toEqual([]);
    running.reject(new Error('The command was lost.'));
    await vi.advanceTimersByTimeAsync(12 * MINUTE_MS);
    expect(closed).toEqual(['acme/a']);
  });

  // FLEETS-2
  test('are closed earlier when there are many, the longest unused first', async () => {
    const used = await fleets.borrow(who('used'));
    for (let number = 0; number <= 2_000; number++) (await fleets.borrow(who(`b${number}`)))[Symbol.dispose]();
    await vi.advanceTimersByTimeAsync(0);
    expect([closed, fleets.size]).toEqual([['acme/b0', 'acme/b1'], 2_000]);
    used[Symbol.dispose]();
  });

  test('are connected again after a failure', async () => {
    failure = new Error('Redis is away.');
    await expect(fleets.borrow(who('a'))).rejects.toThrow('Redis is away.');
    failure = undefined;
    await fleets.borrow(who('a'));
    expect([connects.length, fleets.size]).toEqual([2, 1]);
  });

  test('are all closed with the server', async () => {
    await fleets.borrow(who('a'));
    await fleets[Symbol.asyncDispose]();
    expect(closed).toEqual(['acme/a']);
  });
});
