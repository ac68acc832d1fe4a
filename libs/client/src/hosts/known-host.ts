import { hostIdSchema, ShellfleetError } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';

export async function refuseUnknownHost({ redis, fleet }: FleetContext, id: string): Promise<void> {
  if (hostIdSchema.safeParse(id).success && (await redis.zscore(fleet.hosts, id)) !== null) return;
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `This fleet has no host ${JSON.stringify(id.slice(0, 128))}. \`shellfleet hosts ls\` lists its hosts.`,
    { issues: [{ path: 'host', message: 'is not a host of this fleet' }] },
  );
}
