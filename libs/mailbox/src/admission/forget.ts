import { readFileSync } from 'node:fs';
import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { defineScript, runScript } from '../script.ts';

const script = defineScript('admission/forget', readFileSync(new URL('./forget.lua', import.meta.url), 'utf8'));

/**
 * Takes a session whose life is over (closed, or nothing is left of it) out of the index. `score`: what the index said of it
 * before the caller looked at the session, as text. False when it was submitted to since.
 */
export async function forget(redis: Redis, fleet: FleetKeys, member: string, score: string): Promise<boolean> {
  return (await runScript(redis, script, [fleet.index, fleet.owners], [member, score])) === 1;
}
