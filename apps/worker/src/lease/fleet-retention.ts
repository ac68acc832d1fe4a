import { type FleetKeys, hostBeatSchema, hostKeys, ShellfleetError, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/**
 * Throws RETENTION_CONFLICT while a live host has another retention, because all hosts and clients of a fleet use one
 * recorded value.
 */
export async function refuseOtherRetention(
  redis: Redis,
  fleet: FleetKeys,
  hostId: string,
  retentionMs: number,
): Promise<void> {
  const others = (await redis.zrange(fleet.hosts, '0', '-1')).filter((other) => other !== hostId);
  const beats = await Promise.all(others.map((other) => redis.get(hostKeys(fleet.namespace, other).alive)));
  for (const [index, beat] of beats.entries()) {
    const parsed = hostBeatSchema.safeParse(tryJson(beat));
    if (parsed.success && parsed.data.retentionMs !== retentionMs)
      throw conflict(others[index] as string, parsed.data.retentionMs, retentionMs);
  }
}

function conflict(otherHost: string, theirMs: number, ownMs: number): ShellfleetError {
  return new ShellfleetError(
    'RETENTION_CONFLICT',
    `SHELLFLEET_RETENTION is ${ownMs} ms here, but ${theirMs} ms on host ${otherHost}, which is up. Give every worker of the fleet the same value; to change it, stop them all first.`,
    { hostId: otherHost, retentionMs: theirMs },
  );
}
