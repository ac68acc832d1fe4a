import { type FleetKeys, sessionJobId, tenantQueuesKey } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';
import { sessionJobLockKey } from './keys.ts';

const script = definePlacementScript('acquire');

export type Acquired =
  | { type: 'acquired'; fence: number }
  | { type: 'refused'; holder: string }
  /** `holder` holds the session through a job in the queue of another placement class. */
  | { type: 'held-in-other-class'; holder: string };

/**
 * Requests a fence. The host must hold the lock of the session's job, or be its last owner. Nothing is acquired while
 * another host holds a job of an earlier generation in another class.
 */
export async function acquire(
  redis: Redis,
  fleet: FleetKeys,
  job: { tenant: string; session: string; placementClass: string },
  host: string,
  lockMs: number,
): Promise<Acquired> {
  const lock = sessionJobLockKey(fleet, job.placementClass, job);
  const keys = [fleet.owners, fleet.fence, lock, tenantQueuesKey(fleet, job.tenant)];
  const jobId = sessionJobId(job.tenant, job.session);
  const args = [`${job.tenant}:${job.session}`, host, lockMs, fleet.sessionQueues, jobId];
  const reply = asArray(await runScript(redis, script, keys, args), script.name);
  if (reply[0] === 1) return { type: 'acquired', fence: asNumber(reply[1]) };
  const type = reply[0] === -2 ? 'held-in-other-class' : 'refused';
  return { type, holder: asString(reply[1]) };
}
