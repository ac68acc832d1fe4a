import type { FleetKeys } from '@shellfleet/protocol';
import { asArray, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const script = definePlacementScript('list-tenants');

/** Lists the tenants that have sessions in their index, by name. Throws QUEUE_UNAVAILABLE. */
export async function listTenants(redis: Redis, fleet: FleetKeys): Promise<string[]> {
  const keys = [fleet.noted, fleet.tenants, fleet.queues, fleet.waitingQueues];
  const reply = await runScript(redis, script, keys, [`${fleet.sessionQueues}:tenant:`]);
  return asArray(reply, script.name).map(asString).sort();
}
