import { type FleetKeys, type HostBeat, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { type BootClaim, renewHostId } from './boot-claim.ts';
import type { Leases } from './leases.ts';

/** How often a host says that it lives and renews its leases; and after how long its silence counts as unreachable. */
const BEAT_INTERVAL_MS = 1_600;
export const ALIVE_MS = 5_000;

export interface HeartbeatDeps {
  redis: Redis;
  fleet: FleetKeys;
  claim: BootClaim;
  leases: Leases;
  logger: Logger;
  beat(): HostBeat;
  /** Another process acts as this host now: stop at once. */
  onReplaced(): void;
}

/** Says that the host lives, and renews its leases, until closed. The first beat is out when this resolves. */
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
  // One at a time: a slow Redis is not asked twice.
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
