import { hostKeys } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';
import { askHost } from './ask-host.ts';

/** Asks a host to take no session that it does not have. The request also holds for later processes of the host. */
export function cordonHost(context: FleetContext, id: string): Promise<void> {
  const { cordon } = hostKeys(context.namespace, id);
  return askHost(context, id, 'cordon', () => context.redis.set(cordon, '1'));
}

export function uncordonHost(context: FleetContext, id: string): Promise<void> {
  const { cordon } = hostKeys(context.namespace, id);
  return askHost(context, id, 'cordon', () => context.redis.del(cordon));
}
