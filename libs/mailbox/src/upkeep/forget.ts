import { type FleetKeys, LIMITS } from '@shellfleet/protocol';
import { runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlainScript } from '../scripts.ts';

const script = definePlainScript('upkeep/forget');

/**
 * Removes an ended session from the index, unless its `score` (a text) has changed. A closed session stays in the list
 * of closed sessions for `listedMs`, at most 100,000 of them. Returns true if it removed the session.
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
