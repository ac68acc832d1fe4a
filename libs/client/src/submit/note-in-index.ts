import { type FleetKeys, type SessionKeys, tenantKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

export interface IndexContext {
  readonly redis: Redis;
  readonly fleet: FleetKeys;
}

export interface NotedSession {
  keys: SessionKeys;
  /** Time at which this process last wrote the session's item, by its own clock (ms). */
  indexedAt: number;
}

/** Interval of notes about a used session. After each note, upkeep watches the session for longer (QUIET_MS). */
const INDEX_EVERY_MS = 20_000;

/**
 * Puts the session into the index of its tenant, where lists find it, and notes the tenant for the hosts. The score is
 * negative, so that upkeep looks at the session at once.
 */
export function noteInIndex({ redis, fleet }: IndexContext, session: NotedSession): void {
  const now = Date.now();
  // A clock that is set back must not delay the next note.
  if (Math.abs(now - session.indexedAt) < INDEX_EVERY_MS) return;
  session.indexedAt = now;
  const { namespace, tenant, session: id } = session.keys;
  const noted = [redis.zadd(tenantKeys(namespace, tenant).index, -now, id), redis.lpush(fleet.noted, tenant)];
  Promise.all(noted).catch(() => {
    session.indexedAt = 0;
  });
}
