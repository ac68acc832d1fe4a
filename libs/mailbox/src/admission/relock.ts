import { readFileSync } from 'node:fs';
import { type FleetKeys, sessionJobId, sessionJobLockKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { defineScript, runScript } from '../script.ts';

const script = defineScript('admission/relock', readFileSync(new URL('./relock.lua', import.meta.url), 'utf8'));

/**
 * Renews the lock of an owner, also after it has expired while Redis was unavailable or the owner was suspended. Returns false when another
 * host has the session.
 */
export async function relock(
  redis: Redis,
  fleet: FleetKeys,
  job: { tenant: string; session: string; placementClass: string },
  owner: { fence: number; host: string },
  lockMs: number,
): Promise<boolean> {
  const lock = sessionJobLockKey(fleet, job.placementClass, sessionJobId(job.tenant, job.session));
  const args = [`${job.tenant}:${job.session}`, owner.fence, owner.host, lockMs];
  return (await runScript(redis, script, [fleet.owners, lock], args)) === 1;
}
