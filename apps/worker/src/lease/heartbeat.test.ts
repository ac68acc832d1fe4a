import { ALIVE_MS, fleetKeys, type HostBeat } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startHeartbeat } from './heartbeat.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const STAYS = { leaves: false, retentionMs: 9_000 };

function setUp() {
  const calls: unknown[][] = [];
  const record =
    (name: string) =>
    async (...args: unknown[]) =>
      void calls.push([name, ...args]);
  const state = { boot: null as string | null, answer: Promise.resolve() };
  const redis = {
    get: async () => {
      await state.answer;
      return state.boot;
    },
    ...{ set: record('set'), pexpire: record('pexpire'), zadd: record('zadd'), del: record('del') },
  };
  const replaced = vi.fn();
  const warn = vi.fn();
  const logger = pino({ enabled: false });
  logger.warn = warn;
  const renew = vi.fn(async () => void calls.push(['renew']));
  const deps = {
    redis: redis as unknown as Redis,
    fleet: fleetKeys('ns'),
    claim: { hostId: 'h1', machine: 'm1', boot: 'b1', ttlMs: 5_000 },
    leases: { renewDue: renew, renew: vi.fn(), add: vi.fn() },
    logger,
    beat: () => ({ slots: 2 }) as unknown as HostBeat,
    onReplaced: replaced,
    requireFleet: async () => {},
  };
  return { calls, state, deps, renew, replaced, warn };
}

describe('heartbeats', () => {
  test("renew the leases, then the claim, then the host's presence for 4 s", async () => {
    const { calls, deps, renew } = setUp();
    const heartbeat = await startHeartbeat(deps);
    const beat = [
      ['renew'],
      ['pexpire', 'ns:{x0}:host:h1:alive', ALIVE_MS],
      ['pexpire', 'ns:{x0}:host:h1:boot', 5_000],
      ['set', 'ns:{x0}:host:h1:boot', 'm1 b1', 'PX', 5_000],
      ['set', 'ns:{x0}:host:h1:alive', '{"slots":2}', 'PX', ALIVE_MS],
      ['zadd', deps.fleet.hosts, Date.now(), 'h1'],
    ];
    expect(calls.splice(0)).toEqual([...beat, ['del', 'ns:{x0}:host:h1:left']]);
    await vi.advanceTimersByTimeAsync(ALIVE_MS - 1);
    expect(renew).toHaveBeenCalledTimes(6);
    calls.splice(0);
    await heartbeat.close(STAYS);
    expect(calls).toEqual([['del', 'ns:{x0}:host:h1:alive', 'ns:{x0}:host:h1:boot']]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(renew).toHaveBeenCalledTimes(6);
  });

  test('end with a note that the host has no sessions, kept for the retention', async () => {
    const { calls, deps } = setUp();
    const heartbeat = await startHeartbeat(deps);
    calls.splice(0);
    await heartbeat.close({ leaves: true, retentionMs: 9_000 });
    expect(calls).toEqual([
      ['set', 'ns:{x0}:host:h1:left', '1', 'PX', 9_000],
      ['del', 'ns:{x0}:host:h1:alive', 'ns:{x0}:host:h1:boot'],
    ]);
  });

  test.each([
    ['nothing on its machine is its own', 0, true],
    ['an operator has drained it', 1, false],
  ])('end with the host forgotten unless it is needed: %s', async (_title, asked, isForgotten) => {
    const { deps } = setUp();
    const forgotten: unknown[] = [];
    const multi = {
      zrem: (...args: unknown[]) => {
        forgotten.push(...args);
        return multi;
      },
      del: () => multi,
      exec: async () => [],
    };
    const heartbeat = await startHeartbeat({
      ...deps,
      redis: { ...deps.redis, exists: async () => asked, multi: () => multi } as unknown as Redis,
    });
    await heartbeat.close({ leaves: true, forgets: true, retentionMs: 9_000 });
    expect(forgotten).toEqual(isForgotten ? [deps.fleet.hosts, 'h1'] : []);
  });

  test('keep a worker alive that is suspended for 3 s at any moment', async () => {
    const { deps } = setUp();
    const times: number[] = [];
    deps.redis.zadd = (async () => times.push(performance.now())) as unknown as Redis['zadd'];
    const heartbeat = await startHeartbeat(deps);
    await vi.advanceTimersByTimeAsync(20_000);
    await heartbeat.close(STAYS);
    const pauses = times.slice(1).map((at, index) => at - (times[index] as number));
    expect(ALIVE_MS - Math.max(...pauses)).toBeGreaterThan(3_000);
  });

  test('stop without a write or a renewal when the host was replaced', async () => {
    const { calls, state, deps, renew, replaced } = setUp();
    state.boot = 'm1 b2';
    await startHeartbeat(deps);
    expect([replaced.mock.calls.length, calls, renew.mock.calls.length]).toEqual([1, [], 0]);
  });

  test('do not overlap while Redis is slow, and continue after a failure', async () => {
    const { state, deps, renew, warn } = setUp();
    const heartbeat = await startHeartbeat(deps);
    const slow = Promise.withResolvers<void>();
    state.answer = slow.promise;
    const first = heartbeat.beatNow();
    expect(heartbeat.beatNow()).toBe(first);
    slow.reject(new Error('no answer'));
    await first;
    expect([warn.mock.calls.length, renew.mock.calls.length]).toEqual([1, 1]);
    expect(warn.mock.calls[0]).toEqual([{ err: expect.any(Error) }, 'host.beat-failed']);
    state.answer = Promise.resolve();
    await heartbeat.beatNow();
    expect(renew).toHaveBeenCalledTimes(2);
  });

  test('renew the leases even when a full Redis takes no new value', async () => {
    const { deps, renew } = setUp();
    deps.redis.set = async () => {
      throw new Error('OOM command not allowed');
    };
    await startHeartbeat(deps);
    expect(renew).toHaveBeenCalledTimes(1);
  });

  test('recover on a new connection, and renew the leases with the given function', async () => {
    const { calls, deps, renew } = setUp();
    const heartbeat = await startHeartbeat(deps);
    calls.splice(0);
    const other = setUp();
    const renewed = vi.fn(async () => {});
    await heartbeat.recover(other.deps.redis, renewed);
    expect([calls, other.calls.map(([name]) => name), renewed.mock.calls.length, renew.mock.calls.length]).toEqual([
      [],
      ['pexpire', 'pexpire', 'set', 'set', 'zadd'],
      1,
      1,
    ]);
  });

  test('end only after the heartbeat that is being sent', async () => {
    const { calls, state, deps } = setUp();
    const heartbeat = await startHeartbeat(deps);
    const slow = Promise.withResolvers<void>();
    state.answer = slow.promise;
    void heartbeat.beatNow();
    calls.splice(0);
    const closed = heartbeat.close(STAYS);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(calls).toEqual([]);
    slow.resolve();
    await closed;
    expect(calls.map(([name]) => name)).toEqual(['renew', 'pexpire', 'pexpire', 'set', 'set', 'zadd', 'del']);
  });
});
