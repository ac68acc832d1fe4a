import { type FleetDemand, readFleetDemand } from '@shellfleet/placement';
import { toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';

export async function readDemandOf({ redis, fleet }: FleetContext): Promise<FleetDemand | undefined> {
  try {
    return (await readFleetDemand(redis, fleet))?.fleet;
  } catch (error) {
    throw toQueueError(error);
  }
}
