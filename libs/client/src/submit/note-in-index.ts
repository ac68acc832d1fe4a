import type { Producer } from '../producer.ts';
import type { OpenSession } from './open-session.ts';

/** The index is told at least this often that a session is in use. */
const INDEX_EVERY_MS = 60_000;

/** Puts the session where lists and upkeep find it. */
export function noteInIndex(producer: Producer, session: OpenSession): void {
  const now = Date.now();
  if (now - session.indexedAt < INDEX_EVERY_MS) return;
  session.indexedAt = now;
  producer.redis.zadd(producer.fleet.index, now, session.keys.member).catch(() => {
    session.indexedAt = 0;
  });
}
