import { readFileSync } from 'node:fs';
import { type FleetKeys, sessionJobId, sessionJobLockKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { defineScript, runScript } from '../script.ts';

const script = defineScript('admission/relock', readFileSync(new URL('./relock.lua', import.meta.url), 'utf8'));

/** Keeps the session of an owner whose lock ran out while Redis was away, or the owner asleep. False when somebody else has it. */
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
