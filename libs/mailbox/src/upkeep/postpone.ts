import type { FleetKeys } from '@shellfleet/protocol';
import { runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlainScript } from '../scripts.ts';

const script = definePlainScript('upkeep/postpone');

/**
 * Sets when upkeep looks at a session next. `score`: its score in the index, as text, from before the caller read the session. Returns false
 * when a producer has noted the session since: upkeep then looks at it in its next round.
 */
export async function postpone(
  redis: Redis,
  fleet: FleetKeys,
  member: string,
  score: string,
  delayMs: number,
): Promise<boolean> {
  return (await runScript(redis, script, [fleet.index], [member, score, Math.ceil(delayMs)])) === 1;
}
