import {
  type FleetConfiguration,
  type FleetConfigurationInput,
  fleetConfigurationSchema,
  parseOrThrow,
  ShellfleetError,
} from '@shellfleet/protocol';
import { isCluster, writeFleetConfiguration } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';
import { nameOfThisUser } from '../connection/name-of-this-user.ts';

export interface ApplyOptions {
  /** Name of the person or program that applies it. Default: the user and the machine of this process. */
  appliedBy?: string | undefined;
}

export async function applyConfiguration(
  { redis, fleet }: FleetContext,
  value: FleetConfigurationInput,
  { appliedBy = nameOfThisUser() }: ApplyOptions = {},
): Promise<number> {
  const what = 'The configuration of the fleet';
  const configuration = parseOrThrow(fleetConfigurationSchema, value, 'COMMAND_INVALID', what);
  if (isCluster(redis)) refuseQueued(configuration);
  return writeFleetConfiguration(redis, fleet, { configuration, appliedBy });
}

/** Refuses a quota of waiting commands, which no script can count on several nodes. Throws COMMAND_INVALID. */
function refuseQueued({ tenants }: FleetConfiguration): void {
  const index = tenants.findIndex(({ maxQueued }) => maxQueued !== undefined);
  if (index < 0) return;
  const message = 'needs a fleet on one Redis server, and this one is on a Cluster';
  const path = `tenants[${index}].maxQueued`;
  throw new ShellfleetError('COMMAND_INVALID', `${path} ${message}. Remove it.`, { issues: [{ path, message }] });
}
