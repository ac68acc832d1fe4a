import { type Repetition, repeat } from '@shellfleet/concurrency';
import { type FleetKeys, hostKeys, LIMITS } from '@shellfleet/protocol';
import { mastersOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { forgetHost } from '../lease/forget-host.ts';
import type { Settling } from '../lease/settling.ts';
import { type IndexedSession, readDue, readPage, readRedisTime, readStates } from './read-due.ts';
import { reconcile, sweepAndNotify } from './reconcile.ts';
import { nextStreamBytes, parseMemory } from './stream-budget.ts';
import { sumDiskUse } from './sum-disk-use.ts';
import {
  ignoreFull,
  PAGE,
  passOver,
  type SeenSession,
  sessionFields,
  type UpkeepDeps,
  type UpkeepMemory,
} from './upkeep-deps.ts';

// Restores the fleet's invariants after a process died between two steps. Workers take turns of a minute by a lock in
// Redis, so that most rounds know what the round before has seen.
// UPKEEP-1. A session that can run something, but has no owner and no job, gets a job of its class and priority.
// UPKEEP-2. A session whose owner sends no heartbeat is reported as unreachable, once per fence.
// UPKEEP-3. Data older than its retention, or over its budget, is deleted. Entries past their start deadline are ended.
// UPKEEP-4. A session that nobody used for the retention is closed.
// UPKEEP-5. The work of a round depends on the sessions in use and those that are due, not on how many there are.
// UPKEEP-6. If no live host has a session's seal key, its waiting entries are ended with an error.
// UPKEEP-7. A host that was not seen for the retention is forgotten, with its keys.
// UPKEEP-8. A held head that asks nothing is released and decided again.

/** Time for which a count of waiting entries is valid. */
const WAITING_MS = 10_000;
/** Time after which a worker lets others do the upkeep, which may know newer versions or more keys. */
const TURN_MS = 60_000;
/** Expiry of the lock, in intervals: within a turn, so that no other worker comes in between, and at its end. */
const LOCK = { turn: 1.5, last: 0.9 };

/** Runs rounds while the fleet is settled. At other times hosts that are up may look lost. */
export function startUpkeep(deps: UpkeepDeps, settling: Pick<Settling, 'settled'>): Repetition {
  const memory: UpkeepMemory = {
    streamBytes: LIMITS.sessionStreamBytes,
    position: { tenant: '', cursor: '0' },
    seen: new Map(),
    turnEndsAt: 0,
  };
  return repeat(() => runRound(deps, memory), {
    everyMs: deps.intervalMs,
    mayBegin: () => settling.settled,
    onError: (err) => deps.logger.warn({ err }, 'upkeep.failed'),
  });
}

async function runRound(deps: UpkeepDeps, memory: UpkeepMemory): Promise<void> {
  const { redis, fleet } = deps;
  const lockMs = await takeTurn(deps, memory);
  if (lockMs === undefined) return;
  const nowMs = await readRedisTime(redis);
  const due = await readDue(deps, nowMs);
  memory.seen = new Map(due.map((session) => [session.keys.member, toSeen(session, memory)]));
  const waiting = new Map<string, number>();
  for (let from = 0; from < due.length; from += PAGE) {
    if (from > 0) await redis.pexpire(fleet.upkeepLock, lockMs);
    for (const session of await readStates(due.slice(from, from + PAGE), deps)) {
      // A session in which something waits is always due.
      const { tenant } = session.keys;
      waiting.set(tenant, (waiting.get(tenant) ?? 0) + (session.state?.waiting ?? 0));
      await reconcile(session, nowMs, deps, memory).catch((err) =>
        passOver(err, sessionFields(session.keys), deps.logger),
      );
    }
  }
  await redis.set(fleet.waiting, JSON.stringify(Object.fromEntries(waiting)), 'PX', WAITING_MS).catch(ignoreFull);
  await sumDiskUse(deps).catch(ignoreFull);
  memory.streamBytes = nextStreamBytes(memory.streamBytes, await readMemory(redis));
  await trimIdleStreams(deps, memory);
  for (const host of await forgetHosts(redis, fleet, deps.retentionMs)) {
    deps.logger.info({ 'other.host.id': host }, 'host.forgotten');
  }
}

/**
 * Returns the expiry of the lock (ms) if this worker does the round. If Redis is too full for the lock, every worker
 * does it.
 */
async function takeTurn(
  { redis, fleet, hostId, intervalMs }: UpkeepDeps,
  memory: UpkeepMemory,
): Promise<number | undefined> {
  const turnMs = Math.floor(intervalMs * LOCK.turn);
  const now = performance.now();
  if ((await redis.set(fleet.upkeepLock, hostId, 'PX', turnMs, 'NX').catch(ignoreFull)) !== null) {
    memory.turnEndsAt = now + TURN_MS;
    return turnMs;
  }
  if ((await redis.get(fleet.upkeepLock)) !== hostId) return undefined;
  const lockMs = now < memory.turnEndsAt ? turnMs : Math.floor(intervalMs * LOCK.last);
  await redis.pexpire(fleet.upkeepLock, lockMs);
  return lockMs;
}

/** Returns the memory use of Redis. In a Cluster, that of the fullest node. */
async function readMemory(redis: Redis): Promise<{ usedBytes: number; mostBytes: number }> {
  const infos = await Promise.allSettled(mastersOf(redis).map((node) => node.info('memory')));
  const memories = infos.flatMap((info) => (info.status === 'fulfilled' ? [parseMemory(info.value)] : []));
  const share = ({ usedBytes, mostBytes }: { usedBytes: number; mostBytes: number }) =>
    mostBytes > 0 ? usedBytes / mostBytes : 0;
  return memories.reduce((fullest, one) => (share(one) > share(fullest) ? one : fullest), {
    usedBytes: 0,
    mostBytes: 0,
  });
}

function toSeen({ keys, score }: IndexedSession, { seen }: UpkeepMemory): SeenSession {
  const before = seen.get(keys.member);
  const since = before?.score === score ? before.since : performance.now();
  return { sweptAt: Number.NEGATIVE_INFINITY, ...before, score, since };
}

/** Cuts the streams of idle sessions, too, one page of the indexes per round, while Redis is too full. */
async function trimIdleStreams(deps: UpkeepDeps, memory: UpkeepMemory): Promise<void> {
  if (memory.streamBytes >= LIMITS.sessionStreamBytes) return;
  const { next, sessions } = await readPage(memory.position, deps);
  memory.position = next;
  for (const { keys } of sessions) {
    if (!memory.seen.has(keys.member)) await sweepAndNotify(keys, deps, { streamBytes: memory.streamBytes });
  }
}

/** Deletes hosts that were not seen for the retention, and returns their ids. UPKEEP-4 has ended their generations. */
async function forgetHosts(redis: Redis, fleet: FleetKeys, retentionMs: number): Promise<string[]> {
  const silent = await redis.zrangebyscore(fleet.hosts, '-inf', Date.now() - retentionMs);
  const forgotten: string[] = [];
  for (const host of silent) {
    if ((await redis.exists(hostKeys(fleet.namespace, host).alive)) === 1) continue;
    await forgetHost(redis, fleet, host);
    forgotten.push(host);
  }
  return forgotten;
}
