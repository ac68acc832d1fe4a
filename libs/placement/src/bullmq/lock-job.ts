import type { FleetKeys } from '@shellfleet/protocol';
import { asArray, asNumber, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('lock-job');

/** A waiting job, with its tenant's quota and the length of its new lock. */
interface LockableJob {
  queue: string;
  id: string;
  quota: number | undefined;
  lockMs: number;
}

/**
 * Locks the first of these jobs that still wait, at most `most`, for a host. Leaves out those of tenants that have as
 * many slots as their quotas. Returns the locked jobs.
 */
export async function lockFirstWaiting<J extends LockableJob>(
  redis: Redis,
  fleet: FleetKeys,
  { host, most }: { host: string; most: number },
  jobs: readonly J[],
): Promise<J[]> {
  const args = jobs.flatMap(({ queue, id, quota = '', lockMs }) => [queue, id, quota, lockMs]);
  const reply = await runScript(redis, script, [fleet.queues], [fleet.sessionQueues, host, most, ...args]);
  const places = new Set(asArray(reply, script.name).map(asNumber));
  return jobs.filter((_job, index) => places.has(index + 1));
}
