import { type FleetKeys, sessionsQueue } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('look');

/** A part of the queue of one placement class. */
export interface LookedAt {
  placementClass: string;
  /** number of jobs that wait in the whole queue */
  waiting: number;
  jobs: WaitingJob[];
}

export interface WaitingJob {
  id: string;
  /** JSON, not validated */
  data: string;
  priority: number;
  /** ms by the clock of the process that added it */
  addedAt: number;
}

/** Reads parts of queues in one call, each in the order in which hosts take the jobs. */
export async function lookAtQueues(
  redis: Redis,
  fleet: FleetKeys,
  parts: readonly { placementClass: string; from: number; count: number }[],
): Promise<LookedAt[]> {
  if (parts.length === 0) return [];
  const args = parts.flatMap(({ placementClass, from, count }) => [sessionsQueue(placementClass), from, count]);
  const reply = await runScript(redis, script, [fleet.owners], [fleet.sessionQueues, ...args]);
  return asArray(reply, script.name).map((line, index) => {
    const [waiting, ...fields] = asArray(line, script.name);
    return {
      placementClass: parts[index]?.placementClass ?? '',
      waiting: asNumber(waiting),
      jobs: toJobs(fields.map(asString)),
    };
  });
}

function toJobs(fields: readonly string[]): WaitingJob[] {
  const jobs: WaitingJob[] = [];
  for (let at = 0; at + 3 < fields.length; at += 4) {
    const [id = '', data = '', priority, addedAt] = fields.slice(at, at + 4);
    jobs.push({ id, data, priority: Number(priority), addedAt: Number(addedAt) });
  }
  return jobs;
}
