import { type FleetKeys, LIMITS } from '@shellfleet/protocol';
import { runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlainScript } from '../scripts.ts';

const script = definePlainScript('upkeep/forget');

/**
 * Removes a session whose generation is over (closed, or nothing is left of it) from the index. `score`: its score in the index, as text, from
 * before the caller read the session. A closed one is listed among the closed sessions for `listedMs` more, unless 100,000 were closed since.
 * Returns false when an entry was submitted since.
 */
export async function forget(
  redis: Redis,
  fleet: FleetKeys,
  member: string,
  score: string,
  listedMs?: number,
): Promise<boolean> {
  const args = [member, score, listedMs ?? '', LIMITS.closedSessions];
  return (await runScript(redis, script, [fleet.index, fleet.owners, fleet.closed], args)) === 1;
}
