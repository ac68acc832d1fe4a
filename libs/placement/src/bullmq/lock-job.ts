import type { FleetKeys } from '@shellfleet/protocol';
import { asNumber, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('lock-job');

/**
 * Locks the first of these jobs that still waits, for a host. Returns the index of that job, or -1 when none of them
 * waits any more.
 */
export async function lockFirstWaiting(
  redis: Redis,
  fleet: FleetKeys,
  host: string,
  lockMs: number,
  jobs: readonly { queue: string; id: string }[],
): Promise<number> {
  const args = jobs.flatMap(({ queue, id }) => [queue, id]);
  return asNumber(await runScript(redis, script, [fleet.queues], [fleet.sessionQueues, host, lockMs, ...args])) - 1;
}
