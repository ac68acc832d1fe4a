import { type FleetKeys, sessionJobId, sessionsQueue, tenantKeys } from '@shellfleet/protocol';
import { asArray, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';
import type { Lock } from './renew.ts';

const script = definePlacementScript('declare');

const MOST_IN_CALL = 100;

export interface OwnedSession extends Lock {
  fence: number;
  jobData: string;
  priority: number;
}

/** Restores jobs, locks and owners. Returns the sessions that another host acquired later, under a higher fence. */
export async function declareOwned<O extends OwnedSession>(
  redis: Redis,
  fleet: FleetKeys,
  host: string,
  sessions: readonly O[],
): Promise<O[]> {
  const lost: O[] = [];
  for (let from = 0; from < sessions.length; from += MOST_IN_CALL) {
    const some = sessions.slice(from, from + MOST_IN_CALL);
    const args = some.flatMap(({ job, fence, lockMs, jobData, priority }) => [
      ...[sessionsQueue(job.placementClass, job.tenant), sessionJobId(job.tenant, job.session)],
      `${job.tenant}:${job.session}`,
      ...[fence, lockMs, jobData, priority],
      ...[tenantKeys(fleet.namespace, job.tenant).index, job.tenant, job.session],
    ]);
    const keys = [fleet.owners, fleet.fence, fleet.tenants, fleet.queues];
    const reply = asArray(await runScript(redis, script, keys, [fleet.sessionQueues, host, ...args]), script.name);
    const lostIds = new Set(reply.map(asString));
    lost.push(...some.filter(({ job }) => lostIds.has(sessionJobId(job.tenant, job.session))));
  }
  return lost;
}
