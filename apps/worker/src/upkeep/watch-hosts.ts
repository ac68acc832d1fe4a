import { type Repetition, repeat } from '@shellfleet/concurrency';
import { hostKeys } from '@shellfleet/protocol';
import type { Settling } from '../lease/settling.ts';
import { publishUnreachable } from './publish-unreachable.ts';
import { readDue, readRedisTime, readStates } from './read-due.ts';
import { ignoreFull, PAGE, type UpkeepDeps } from './upkeep-deps.ts';

// Reports the sessions of a host soon after its last heartbeat has run out, without waiting for a round of upkeep (UPKEEP-2).
//
// WATCH-1. Between two looks of the fleet are at most one and a half intervals, also when the host that looked last is the one that died.
// WATCH-2. A look costs one existence check for each known host. The sessions are read only when a host has gone silent.
// WATCH-3. A host is not taken for silent while the fleet settles.

type WatchDeps = Pick<UpkeepDeps, 'redis' | 'fleet' | 'retentionMs' | 'logger'>;

/** Looks for hosts that went silent, once per interval while the fleet is settled, until closed. */
export function watchHosts(deps: WatchDeps, settling: Pick<Settling, 'settled'>, intervalMs: number): Repetition {
  let reported = new Set<string>();
  const look = async () => {
    // Half the interval: the others skip this look, and nobody misses the next one.
    const lock = [deps.fleet.watchLock, '1', 'PX', Math.floor(intervalMs / 2), 'NX'] as const;
    if ((await deps.redis.set(...lock).catch(ignoreFull)) === null) return;
    const silent = await readSilentHosts(deps);
    const fresh = new Set(silent.filter((host) => !reported.has(host)));
    if (fresh.size > 0) await reportSessionsOf(fresh, deps, settling);
    // Whoever is back is reported again when it goes silent again.
    if (settling.settled) reported = new Set(silent);
  };
  return repeat(look, {
    everyMs: intervalMs,
    mayBegin: () => settling.settled,
    onError: (err) => deps.logger.warn({ err }, 'upkeep.failed'),
  });
}

async function readSilentHosts({ redis, fleet }: WatchDeps): Promise<string[]> {
  const hosts = await redis.zrange(fleet.hosts, '0', '-1');
  const alive = await Promise.all(hosts.map((host) => redis.exists(hostKeys(fleet.namespace, host).alive)));
  return hosts.filter((_, index) => alive[index] === 0);
}

async function reportSessionsOf(
  hosts: ReadonlySet<string>,
  deps: WatchDeps,
  settling: Pick<Settling, 'settled'>,
): Promise<void> {
  const due = await readDue(deps, await readRedisTime(deps.redis));
  for (let from = 0; from < due.length; from += PAGE) {
    const found = await readStates(due.slice(from, from + PAGE), deps);
    const reports = found.map(async ({ keys, state, owner }) => {
      // A call may have waited for Redis to come back: the hosts may be up, and not have renewed their heartbeats.
      if (state === undefined || !hosts.has(state.host) || owner === 'alive' || !settling.settled) return;
      if (state.phase !== 'closed') await publishUnreachable(keys, state, deps).catch(ignoreFull);
    });
    await Promise.all(reports);
  }
}
