import { type FleetKeys, parseSessionsQueue } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('look');

export interface WaitingJob {
  placementClass: string;
  /** name of the queue */
  queue: string;
  /** name of the part of the queue that has the jobs of the same priority */
  line: string;
  id: string;
  /** JSON, not validated */
  data: string;
  /** number of jobs that wait behind it in its line */
  behind: number;
  /** time since which it has been the next one of its tenant (ms, by the clock of Redis); 0 if it is not */
  nextSince: number;
}

interface LookReply {
  /** time of Redis (ms) */
  at: number;
  /** other classes in which jobs wait */
  others: string[];
  /** an equal part for each live host of the jobs that may be taken, rounded up */
  part: number;
  jobs: WaitingJob[];
}

export interface Look {
  /** classes of which jobs are listed */
  served: readonly string[];
  /** weights of the tenants that have another one than 1 */
  weights: Readonly<Record<string, number>>;
  /** most slots of the tenants that have a quota */
  quotas: Readonly<Record<string, number>>;
  /** tenants of which no job is listed */
  passedOver: readonly string[];
  /** position of the first job that is read, for lines that are not read from their beginning */
  from: ReadonlyMap<string, number>;
  /** number of jobs that are listed */
  places: number;
  /** True to list jobs of every line, an equal part of `places` and at least one each. */
  shared: boolean;
}

const FIELDS = 6;

/** Lists waiting jobs of all tenants in one call, in the order in which a host takes them. */
export async function lookAtQueues(redis: Redis, fleet: FleetKeys, look: Look): Promise<LookReply> {
  const { served, passedOver, from, ...rest } = look;
  const sets = { served: toSet(served), passedOver: toSet(passedOver) };
  const asked = JSON.stringify({ ...rest, ...sets, from: Object.fromEntries(from) });
  const reply = asArray(await runScript(redis, script, keysOf(fleet), [fleet.sessionQueues, asked]), script.name);
  const jobs: WaitingJob[] = [];
  for (let at = 3; at + FIELDS <= reply.length; at += FIELDS) {
    const [queue = '', line = '', id = '', data = '', behind, nextSince] = reply.slice(at, at + FIELDS).map(asString);
    const placementClass = parseSessionsQueue(queue)?.placementClass ?? '';
    jobs.push({ placementClass, queue, line, id, data, behind: asNumber(behind), nextSince: asNumber(nextSince) });
  }
  const others = asString(reply[1]).split(' ');
  return { at: asNumber(reply[0]), others: others.filter((name) => name !== ''), part: asNumber(reply[2]), jobs };
}

/**
 * Writes what the tenants hold and wait for to `fleetKeys().demand`, for those that may not read the queues of others.
 * Does nothing if a host has written it within a second.
 */
export async function publishDemand(
  redis: Redis,
  fleet: FleetKeys,
  { weights, quotas }: Pick<Look, 'weights' | 'quotas'>,
): Promise<void> {
  const asked = JSON.stringify({ weights, quotas });
  await runScript(redis, script, [...keysOf(fleet), fleet.demand], [fleet.sessionQueues, asked]);
}

const keysOf = (fleet: FleetKeys) => [fleet.queues, fleet.noted, fleet.tenants, fleet.waitingQueues, fleet.hosts];

const toSet = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, true]));
