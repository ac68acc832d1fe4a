import { type FleetKeys, type HostBeat, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { type BootClaim, renewHostId } from './boot-claim.ts';
import type { Leases } from './leases.ts';

/** The interval of heartbeats. Each renews the leases of the host. */
const BEAT_INTERVAL_MS = 1_600;
/** A host without a heartbeat for this time counts as unreachable. */
export const ALIVE_MS = 5_000;

export interface HeartbeatDeps {
  redis: Redis;
  fleet: FleetKeys;
  claim: BootClaim;
  leases: Leases;
  logger: Logger;
  /** The content of the next heartbeat. */
  beat(): HostBeat;
  /** Called when another process holds the host id: this one must stop at once. */
  onReplaced(): void;
}

/** Publishes heartbeats and renews the leases until closed. Resolves after the first one; `beatNow` sends an extra one. */
export async function startHeartbeat(
  deps: HeartbeatDeps,
): Promise<{ beatNow(): Promise<void>; close(): Promise<void> }> {
  const { redis, fleet, claim } = deps;
  const keys = hostKeys(fleet.namespace, claim.hostId);
  let inFlight: Promise<void> | undefined;

  const beat = async () => {
    if (!(await renewHostId(redis, fleet.namespace, claim))) return deps.onReplaced();
    await redis
      .multi()
      .set(keys.alive, JSON.stringify(deps.beat()), 'PX', ALIVE_MS)
      .zadd(fleet.hosts, Date.now(), claim.hostId)
      .exec();
    await deps.leases.renew();
  };
  // One at a time: while Redis is slow, no second heartbeat is sent.
  const beatNow = () => {
    inFlight ??= beat()
      .catch((err: unknown) => deps.logger.warn({ err }, 'host.beat-failed'))
      .finally(() => {
        inFlight = undefined;
      });
    return inFlight;
  };

  await beatNow();
  const timer = setInterval(() => void beatNow(), BEAT_INTERVAL_MS);
  return {
    beatNow,
    async close() {
      clearInterval(timer);
      await inFlight;
      await redis.del(keys.alive, keys.boot).catch(() => {});
    },
  };
}
