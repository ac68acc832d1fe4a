import { readFileSync } from 'node:fs';
import { type FleetKeys, sessionJobId, sessionJobLockKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { asArray, asNumber, asString } from '../reply.ts';
import { defineScript, runScript } from '../script.ts';

const script = defineScript('admission/grant', readFileSync(new URL('./grant.lua', import.meta.url), 'utf8'));

/**
 * Asks for a fence. The host must hold the lock of the session's job, or have been the last owner of a session whose job nobody has locked.
 * `otherClasses`: the session may have a job in one of these queues that was left from an earlier life of its id; while another host holds
 * the lock of one, the grant is refused.
 */
export async function grant(
  redis: Redis,
  fleet: FleetKeys,
  job: { tenant: string; session: string; placementClass: string },
  host: string,
  lockMs: number,
  otherClasses: readonly string[] = [],
): Promise<{ type: 'granted'; fence: number } | { type: 'refused'; holder: string }> {
  const lockOf = (placementClass: string) =>
    sessionJobLockKey(fleet, placementClass, sessionJobId(job.tenant, job.session));
  const locks = [job.placementClass, ...otherClasses].map(lockOf);
  const args = [`${job.tenant}:${job.session}`, host, lockMs];
  const reply = asArray(await runScript(redis, script, [fleet.owners, fleet.fence, ...locks], args), script.name);
  return reply[0] === 1
    ? { type: 'granted', fence: asNumber(reply[1]) }
    : { type: 'refused', holder: asString(reply[1]) };
}
