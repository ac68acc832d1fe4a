import { repeat } from '@shellfleet/concurrency';
import { ALIVE_MS, type FleetKeys, type HostBeat, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import { type BootClaim, holdsHostId, renewHostId } from './boot-claim.ts';
import { forgetHost } from './forget-host.ts';
import type { Leases } from './leases.ts';

/** Interval of heartbeats, which renew the leases that are due. A worker that is suspended for 3 s stays alive. */
const BEAT_INTERVAL_MS = 700;

export interface HeartbeatDeps {
  redis: Redis;
  fleet: FleetKeys;
  claim: BootClaim;
  leases: Pick<Leases, 'renewDue'>;
  logger: Logger;
  beat(): HostBeat;
  /** Called when another process holds the host id: this process must stop at once. */
  onReplaced(): void;
  /** Rejects when Redis has another fleet. Declares the host's fleet to a Redis that has none. */
  requireFleet(redis: Redis): Promise<void>;
}

export interface Heartbeat {
  /** Time of the last stored heartbeat (ms, `Date.now()`). */
  readonly lastAt: number;
  /** Sends an extra heartbeat. Never rejects. */
  beatNow(): Promise<void>;
  /** Sends the first heartbeat of a new connection, and renews the leases with `renew`. Rejects when either fails. */
  recover(redis: Redis, renew: () => Promise<void>): Promise<void>;
  /**
   * Ends the heartbeats. `leaves`: the host has no sessions left, and is no longer listed. `forgets`: in addition
   * nothing on its machine is its own, so the fleet forgets it, unless an operator has asked something of it.
   */
  close(how: { leaves: boolean; forgets?: boolean; retentionMs: number }): Promise<void>;
}

/** Publishes heartbeats and renews the leases until closed. Resolves after the first heartbeat. */
export async function startHeartbeat(deps: HeartbeatDeps): Promise<Heartbeat> {
  const { redis, fleet, claim } = deps;
  const keys = hostKeys(fleet.namespace, claim.hostId);
  let lastAt = 0;

  const beat = async (via: Redis, renew: () => Promise<void>) => {
    const [isHeld] = await Promise.all([holdsHostId(via, fleet.namespace, claim), deps.requireFleet(via)]);
    if (!isHeld) return deps.onReplaced();
    await renew();
    const at = Date.now();
    // A full Redis accepts only the first two calls, which keep the host alive with its leases.
    await Promise.all([
      via.pexpire(keys.alive, ALIVE_MS),
      via.pexpire(keys.boot, claim.ttlMs),
      renewHostId(via, fleet.namespace, claim),
      via.set(keys.alive, JSON.stringify(deps.beat()), 'PX', ALIVE_MS),
      via.zadd(fleet.hosts, at, claim.hostId),
    ]);
    lastAt = at;
  };
  // While Redis is slow, no second heartbeat is sent.
  const beats = repeat(() => beat(redis, () => deps.leases.renewDue()), {
    everyMs: BEAT_INTERVAL_MS,
    onError: (err) => deps.logger.warn({ err }, 'host.beat-failed'),
  });

  await beats.now();
  if (lastAt > 0) await redis.del(keys.left).catch(() => {});
  return {
    get lastAt() {
      return lastAt;
    },
    beatNow: beats.now,
    recover: beat,
    async close({ leaves, forgets = false, retentionMs }) {
      await beats.close();
      if (leaves) await redis.set(keys.left, '1', 'PX', retentionMs).catch(() => {});
      await redis.del(keys.alive, keys.boot).catch(() => {});
      if (!leaves || !forgets || (await redis.exists(keys.cordon, keys.drain).catch(() => 1)) > 0) return;
      await forgetHost(redis, fleet, claim.hostId).catch(() => {});
    },
  };
}
