import { type Repetition, repeat } from '@shellfleet/concurrency';
import type { SessionHost } from '../run/host-services.ts';

export interface SweepTimes {
  intervalMs: number;
  /**
   * How long the fleet must not know a host before its sandboxes are removed. Redis may just have lost its data, and
   * the host returns.
   */
  goneMs: number;
}
const USUAL_TIMES: SweepTimes = { intervalMs: 60_000, goneMs: 600_000 };

/**
 * Removes regularly, until closed, the sandboxes of this fleet on this machine that nobody owns: those of this host
 * that no session has (an earlier removal failed), and those of hosts that the fleet has forgotten.
 */
export function sweepSandboxesRegularly(host: SessionHost, times = USUAL_TIMES): Repetition {
  const { sandboxes, kept, logger } = host;
  const isGone = createGoneCheck(host, times);
  const sweep = async () => {
    if (sandboxes.problem() !== undefined) return;
    const removed = await sandboxes.sweep(isGone);
    if (removed > 0) logger.warn({ removed }, 'sandbox.reaped');
    await kept.look();
  };
  return repeat(sweep, {
    everyMs: times.intervalMs,
    onError: (err) => logger.warn({ err }, 'sandbox.sweep-failed'),
  });
}

/** Returns whether a host is gone: the fleet has not known it for `goneMs`, as often as this process looked. */
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
