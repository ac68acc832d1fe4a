import { type Repetition, repeat } from '@shellfleet/concurrency';
import { readSandboxOwner } from '@shellfleet/mailbox';
import { sessionKeys } from '@shellfleet/protocol';
import type { Settling } from '../lease/settling.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { OwnerOf } from '../sandbox/sandbox.ts';

export interface SweepTimes {
  intervalMs: number;
  /** Time without an owner in Redis after which sandboxes are removed. Redis may just have lost its data. */
  goneMs: number;
}
const USUAL_TIMES: SweepTimes = { intervalMs: 60_000, goneMs: 600_000 };

/** Removes sandboxes without a session, or of hosts that the fleet has forgotten, every minute until closed. */
export function sweepSandboxesRegularly(
  host: SessionHost,
  settling: Pick<Settling, 'settled'>,
  times = USUAL_TIMES,
): Repetition {
  const { sandboxes, kept, redis, logger } = host;
  const isGone = createGoneCheck(host, times);
  const ownerOf: OwnerOf = ({ namespace, tenant, session }) =>
    readSandboxOwner(redis, sessionKeys(namespace, tenant, session));
  const sweep = async () => {
    if (sandboxes.problem() !== undefined) return;
    const removed = await sandboxes.sweep(isGone, ownerOf, times.goneMs);
    if (removed > 0) logger.warn({ removed }, 'sandbox.reaped');
    await kept.refresh();
  };
  return repeat(sweep, {
    everyMs: times.intervalMs,
    mayBegin: () => settling.settled,
    onError: (err) => logger.warn({ err }, 'sandbox.sweep-failed'),
  });
}

/** Returns a check whether the fleet has not known a host for `goneMs`. */
export function createGoneCheck(
  { redis, fleet }: Pick<SessionHost, 'redis' | 'fleet'>,
  { goneMs } = USUAL_TIMES,
  now: () => number = () => performance.now(),
): (hostId: string) => Promise<boolean> {
  const missingSince = new Map<string, number>();
  return async (hostId) => {
    if ((await redis.zscore(fleet.hosts, hostId)) !== null) {
      missingSince.delete(hostId);
      return false;
    }
    const since = missingSince.get(hostId) ?? now();
    missingSince.set(hostId, since);
    return now() - since >= goneMs;
  };
}
