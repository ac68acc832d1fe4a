import { readFileSync } from 'node:fs';
import { type FleetKeys, sessionJobId, sessionJobLockKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { asArray, asNumber, asString } from '../reply.ts';
import { defineScript, runScript } from '../script.ts';

const script = defineScript('admission/grant', readFileSync(new URL('./grant.lua', import.meta.url), 'utf8'));

/** Asks for a fence: the host must hold the lock of the session's job, or have been its last owner while nobody does. */
export async function grant(
  redis: Redis,
  fleet: FleetKeys,
  session: { tenant: string; session: string },
  host: string,
  lockMs: number,
): Promise<{ type: 'granted'; fence: number } | { type: 'refused'; holder: string }> {
  const lock = sessionJobLockKey(fleet, sessionJobId(session.tenant, session.session));
  const args = [`${session.tenant}:${session.session}`, host, lockMs];
  const reply = asArray(await runScript(redis, script, [fleet.owners, fleet.fence, lock], args), script.name);
  return reply[0] === 1
    ? { type: 'granted', fence: asNumber(reply[1]) }
    : { type: 'refused', holder: asString(reply[1]) };
}
