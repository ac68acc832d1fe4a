import {
  type Caller,
  type FleetConfiguration,
  type FleetConfigurationInput,
  fleetConfigurationSchema,
  parseOrThrow,
  ShellfleetError,
} from '@shellfleet/protocol';
import { isCluster, writeFleetConfiguration } from '@shellfleet/redis';
import { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';
import { nameOfUser } from '../connection/name-of-this-user.ts';

export interface ApplyOptions {
  /**
   * Name of the person or program that applies it. Default: the name of the client's `caller`, else the user and the
   * machine of this process.
   */
  appliedBy?: string | undefined;
}

const optionsSchema = z.object({
  appliedBy: z.string('must be a string').min(1, 'must not be empty').max(256, 'must be at most 256 characters'),
});

export async function applyConfiguration(
  context: FleetContext & { readonly caller: Caller | undefined },
  value: FleetConfigurationInput,
  { appliedBy: given = nameOfUser(context) }: ApplyOptions = {},
): Promise<number> {
  const { redis, fleet } = context;
  const { appliedBy } = parseOrThrow(optionsSchema, { appliedBy: given }, 'COMMAND_INVALID', 'The call');
  const what = 'The configuration of the fleet';
  const configuration = parseOrThrow(fleetConfigurationSchema, value, 'COMMAND_INVALID', what);
  if (isCluster(redis)) refuseCounted(configuration);
  // The parser of scripts is loaded only for this.
  const { compileRules } = await import('@shellfleet/policy');
  compileRules(configuration.rules, { source: "the fleet's configuration" });
  return writeFleetConfiguration(redis, fleet, { configuration, appliedBy });
}

/** Quotas that `submit` checks in Redis. */
const COUNTED = ['maxQueued', 'maxDiskBytes'] as const;

/** Refuses quotas that no script can check on several nodes. Throws COMMAND_INVALID. */
function refuseCounted({ tenants }: FleetConfiguration): void {
  const message = 'needs a fleet on one Redis server, and this one is on a Cluster';
  for (const [index, tenant] of tenants.entries()) {
    const quota = COUNTED.find((name) => tenant[name] !== undefined);
    if (quota === undefined) continue;
    const path = `tenants[${index}].${quota}`;
    throw new ShellfleetError('COMMAND_INVALID', `${path} ${message}. Remove it.`, { issues: [{ path, message }] });
  }
}
