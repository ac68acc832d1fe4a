import type { FleetKeys, SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

export interface IndexContext {
  readonly redis: Redis;
  readonly fleet: FleetKeys;
}

export interface IndexedSession {
  keys: SessionKeys;
  /** When this process last wrote its entry, by its own clock (ms). */
  indexedAt: number;
}

/** While a session is in use, its entry in the index is at most this old. */
const INDEX_EVERY_MS = 60_000;

/** Puts the session into the index, where lists and upkeep find it. */
export function noteInIndex({ redis, fleet }: IndexContext, session: IndexedSession): void {
  const now = Date.now();
  if (now - session.indexedAt < INDEX_EVERY_MS) return;
  session.indexedAt = now;
  redis.zadd(fleet.index, now, session.keys.member).catch(() => {
    session.indexedAt = 0;
  });
}
