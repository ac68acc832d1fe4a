import { type Repetition, repeat } from '@shellfleet/concurrency';
import { hostKeys } from '@shellfleet/protocol';
import type { Settling } from '../lease/settling.ts';
import { publishUnreachable } from './publish-unreachable.ts';
import { readDue, readRedisTime, readStates } from './read-due.ts';
import { ignoreFull, PAGE, type UpkeepDeps } from './upkeep-deps.ts';

// Reports the sessions of a host soon after its last heartbeat has expired, before the next round of upkeep (UPKEEP-2).
// WATCH-1. At most one and a half intervals lie between two checks of the fleet, even if the last checking host died.
// WATCH-2. A check costs one EXISTS for each known host. Sessions are read only when a host has gone silent.
// WATCH-3. No host counts as silent while the fleet settles.

type WatchDeps = Pick<UpkeepDeps, 'redis' | 'fleet' | 'retentionMs' | 'logger'>;

/** Checks for silent hosts once per interval while the fleet is settled, until closed. */
export function watchHosts(deps: WatchDeps, settling: Pick<Settling, 'settled'>, intervalMs: number): Repetition {
  let reported = new Set<string>();
  const look = async () => {
    // The lock lasts half the interval, so that other hosts skip this check but not the next one.
    const lock = [deps.fleet.watchLock, '1', 'PX', Math.floor(intervalMs / 2), 'NX'] as const;
    if ((await deps.redis.set(...lock).catch(ignoreFull)) === null) return;
    const silent = await readSilentHosts(deps);
    const fresh = new Set(silent.filter((host) => !reported.has(host)));
    if (fresh.size > 0) await reportSessionsOf(fresh, deps, settling);
    // A host that is back can be reported again.
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
      // If a read waited until Redis came back, the fleet may settle: hosts may be up without a heartbeat yet.
      if (state === undefined || !hosts.has(state.host) || owner === 'alive' || !settling.settled) return;
      if (state.phase !== 'closed') await publishUnreachable(keys, state, deps).catch(ignoreFull);
    });
    await Promise.all(reports);
  }
}
