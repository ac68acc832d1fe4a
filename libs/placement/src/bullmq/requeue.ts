import { type FleetKeys, sessionsQueue } from '@shellfleet/protocol';
import { asNumber, REDIS_DEADLINE_MS, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('requeue');

/**
 * Moves jobs whose lock has run out to the front of their queues, in each class at most once per interval over all
 * hosts. Returns their number. A call that Redis receives after its deadline does nothing.
 */
export async function requeue(
  redis: Redis,
  fleet: FleetKeys,
  placementClasses: readonly string[],
  intervalMs: number,
): Promise<number> {
  const [seconds] = await redis.time();
  // `seconds` is rounded down, so one is added.
  const notAfter = (Number(seconds) + 1) * 1_000 + REDIS_DEADLINE_MS;
  const moved = await Promise.all(
    placementClasses.map((placementClass) => {
      const queue = `${fleet.sessionQueues}:${sessionsQueue(placementClass)}:`;
      return runScript(redis, script, [`${queue}requeued`], [queue, notAfter, intervalMs]);
    }),
  );
  return moved.map(asNumber).reduce((sum, one) => sum + one, 0);
}
