import { type FleetKeys, sessionJobId, sessionsQueue } from '@shellfleet/protocol';
import { asArray, asNumber, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';
import type { PlacementClass } from '../placement.ts';
import type { TenantSession } from '../session-job.ts';

const script = definePlacementScript('rank');

const MOST_IN_CALL = 50;

export interface Ranks {
  /** number of the tenant's sessions that wait in the classes */
  waiting: number;
  /** for each session how many of these are taken before it; undefined if it does not wait */
  ahead: (number | undefined)[];
}

/** Finds the places of a tenant's sessions of one class among those that wait in it and in any of `classes`. */
export async function rankSessions(
  redis: Redis,
  fleet: FleetKeys,
  sessions: readonly TenantSession[],
  placementClass: PlacementClass,
  classes: ReadonlySet<PlacementClass>,
): Promise<Ranks> {
  const ranks: Ranks = { waiting: 0, ahead: [] };
  const [tenant = ''] = sessions.map((session) => session.tenant);
  const names = [placementClass, ...classes].filter((name, index, all) => all.indexOf(name) === index);
  const keys = names.map((name) => `${fleet.sessionQueues}:${sessionsQueue(name, tenant)}:wait`);
  for (let from = 0; from < sessions.length; from += MOST_IN_CALL) {
    const some = sessions.slice(from, from + MOST_IN_CALL);
    const args = some.flatMap(({ session }) => [1, sessionJobId(tenant, session)]);
    const [waiting, ...ahead] = asArray(await runScript(redis, script, keys, args), script.name).map(asNumber);
    ranks.waiting = waiting ?? 0;
    ranks.ahead.push(...ahead.map((count) => (count < 0 ? undefined : count)));
  }
  return ranks;
}
