import { callHost, toQueueError } from '@shellfleet/mailbox';
import { hostIdSchema, hostKeys, ShellfleetError } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface DrainOptions {
  /** Withdraws the request. */
  undo?: boolean | undefined;
  /** The request ends by itself after this time. */
  forMs?: number | undefined;
}

/** Asks a host to take nothing new, or withdraws that. The request is stored, so it also holds for later processes of the host. */
export async function drainHost(
  context: FleetContext,
  id: string,
  { undo = false, forMs }: DrainOptions = {},
): Promise<void> {
  try {
    const known = hostIdSchema.safeParse(id).success && (await context.redis.zscore(context.fleet.hosts, id)) !== null;
    if (!known) throw unknownHost(id);
    const { drain } = hostKeys(context.namespace, id);
    if (undo) await context.redis.del(drain);
    else if (forMs === undefined) await context.redis.set(drain, '1');
    else await context.redis.set(drain, '1', 'PX', forMs);
  } catch (error) {
    throw error instanceof ShellfleetError ? error : toQueueError(error);
  }
  // Without the call the host reads the request within seconds.
  await callHost(context.redis, context.namespace, id, { type: 'drain' }).catch(() => {});
}

function unknownHost(id: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `This fleet has no host ${JSON.stringify(id.slice(0, 128))}. \`shellfleet hosts ls\` lists its hosts.`,
    { issues: [{ path: 'host', message: 'is not a host of this fleet' }] },
  );
}
