import type { FleetKeys } from '@shellfleet/protocol';
import { asNumber, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('lock-job');

/**
 * Locks the first of these jobs that still waits, for a host, unless its tenant has as many slots as its quota. Returns
 * the index of that job, or -1 if there is none.
 */
export async function lockFirstWaiting(
  redis: Redis,
  fleet: FleetKeys,
  host: string,
  lockMs: number,
  jobs: readonly { queue: string; id: string; quota: number | undefined }[],
): Promise<number> {
  const args = jobs.flatMap(({ queue, id, quota = '' }) => [queue, id, quota]);
  return asNumber(await runScript(redis, script, [fleet.queues], [fleet.sessionQueues, host, lockMs, ...args])) - 1;
}
