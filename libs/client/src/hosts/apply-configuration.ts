import { type FleetConfigurationInput, fleetConfigurationSchema, parseOrThrow } from '@shellfleet/protocol';
import { writeFleetConfiguration } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';
import { nameOfThisUser } from '../connection/name-of-this-user.ts';

export interface ApplyOptions {
  /** Name of the person or program that applies it. Default: the user and the machine of this process. */
  appliedBy?: string | undefined;
}

export function applyConfiguration(
  { redis, fleet }: FleetContext,
  value: FleetConfigurationInput,
  { appliedBy = nameOfThisUser() }: ApplyOptions = {},
): Promise<number> {
  const what = 'The configuration of the fleet';
  const configuration = parseOrThrow(fleetConfigurationSchema, value, 'COMMAND_INVALID', what);
  return writeFleetConfiguration(redis, fleet, { configuration, appliedBy });
}
