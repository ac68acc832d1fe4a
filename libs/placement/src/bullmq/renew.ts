import { type FleetKeys, sessionJobId, sessionsQueue } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('renew');

/** The most locks that one call extends, since a script blocks Redis. */
const MOST_IN_CALL = 200;

export interface Lock {
  job: { tenant: string; session: string; placementClass: string };
  /** Absent until the host is the session's owner. */
  fence?: number;
  lockMs: number;
}

export interface Renewed<L extends Lock> {
  /** Locks whose jobs another host has. */
  lost: L[];
  /** The time of Redis (ms). */
  redisTime: number;
}

/** Extends a host's locks. A lock that has run out is set again, unless another host took the job. */
export async function renew<L extends Lock>(
  redis: Redis,
  fleet: FleetKeys,
  host: string,
  locks: readonly L[],
): Promise<Renewed<L>> {
  const calls: Promise<Renewed<L>>[] = [];
  for (let from = 0; from < locks.length; from += MOST_IN_CALL) {
    calls.push(renewSome(redis, fleet, host, locks.slice(from, from + MOST_IN_CALL)));
  }
  const renewed = await Promise.all(calls);
  return { lost: renewed.flatMap(({ lost }) => lost), redisTime: Math.min(...renewed.map((some) => some.redisTime)) };
}

async function renewSome<L extends Lock>(
  redis: Redis,
  fleet: FleetKeys,
  host: string,
  locks: L[],
): Promise<Renewed<L>> {
  const args = locks.flatMap(({ job, fence, lockMs }) => [
    ...[sessionsQueue(job.placementClass, job.tenant), sessionJobId(job.tenant, job.session)],
    `${job.tenant}:${job.session}`,
    ...[fence ?? '', lockMs],
  ]);
  const reply = await runScript(redis, script, [fleet.owners], [fleet.sessionQueues, host, ...args]);
  const [time, ...lostJobs] = asArray(reply, script.name);
  const lostIds = new Set(lostJobs.map(asString));
  const lost = locks.filter(({ job }) => lostIds.has(sessionJobId(job.tenant, job.session)));
  return { lost, redisTime: asNumber(time) };
}
