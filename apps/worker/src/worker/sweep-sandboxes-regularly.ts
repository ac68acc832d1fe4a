import { type Repetition, repeat } from '@shellfleet/concurrency';
import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { KeptSandboxes } from '../sandbox/kept-sandboxes.ts';
import type { Sandboxes } from '../sandbox/sandbox.ts';

export interface SweepTimes {
  intervalMs: number;
  /** How long the fleet must not know a host before its sandboxes are removed. Redis may just have lost its data, and the host returns. */
  goneMs: number;
}
const USUAL_TIMES: SweepTimes = { intervalMs: 60_000, goneMs: 600_000 };

interface SweepDeps {
  sandboxes: Pick<Sandboxes, 'sweep' | 'problem'>;
  kept: Pick<KeptSandboxes, 'look'>;
  redis: Pick<Redis, 'zscore'>;
  fleet: FleetKeys;
  logger: Logger;
  /** Default: every minute, and ten minutes. */
  times?: SweepTimes | undefined;
}

/**
 * Removes regularly, until closed, the sandboxes of this fleet on this machine that nobody owns: those of this host that no session has (an
 * earlier removal failed), and those of hosts that the fleet has forgotten.
 */
export function sweepSandboxesRegularly(deps: SweepDeps): Repetition {
  const { intervalMs } = deps.times ?? USUAL_TIMES;
  const isGone = createGoneCheck(deps);
  const sweep = async () => {
    if (deps.sandboxes.problem() !== undefined) return;
    const removed = await deps.sandboxes.sweep(isGone);
    if (removed > 0) deps.logger.warn({ removed }, 'sandbox.reaped');
    await deps.kept.look();
  };
  return repeat(sweep, {
    everyMs: intervalMs,
    onError: (err) => deps.logger.warn({ err }, 'sandbox.sweep-failed'),
  });
}

/** Asks whether a host is gone: the fleet has not known it for `goneMs`, as often as this process looked. */
export function createGoneCheck(
  { redis, fleet, times = USUAL_TIMES }: Pick<SweepDeps, 'redis' | 'fleet' | 'times'>,
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
    return now() - since >= times.goneMs;
  };
}
