import { fleetKeys, LIMITS, type SessionKeys, tenantKeys } from '@shellfleet/protocol';
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
  { namespace, tenant, session, member }: SessionKeys,
  score: string,
  listedMs?: number,
): Promise<boolean> {
  const { index, closed } = tenantKeys(namespace, tenant);
  const args = [session, score, listedMs ?? '', LIMITS.closedSessions, member];
  return (await runScript(redis, script, [index, fleetKeys(namespace).owners, closed], args)) === 1;
}
