import { fleetKeys, type HostInfo, toKeyspace } from '@shellfleet/protocol';
import { connectRedis, readFleetIdentity } from '@shellfleet/redis';
import { type DrainOptions, drainHost } from './drain-host.ts';
import { listHosts } from './list-hosts.ts';

/** The hosts of a fleet, which can be drained before the fleet is replaced. */
export interface FleetHosts {
  /** Version of the protocol of the fleet's keys. */
  readonly protocol: number;
  hosts(): Promise<HostInfo[]>;
  drainHost(id: string, options?: DrainOptions): Promise<void>;
  close(): Promise<void>;
}

/**
 * Connects to the hosts of a fleet, whatever the version of its keys: all versions have those of hosts.
 * Returns undefined when the namespace has no fleet. Rejects with QUEUE_UNAVAILABLE.
 */
export async function connectToHosts(redisUrl: string, namespace: string): Promise<FleetHosts | undefined> {
  const { redis } = await connectRedis(redisUrl, 'producer', 'shellfleet-hosts');
  const close = async () => redis.disconnect();
  const identity = await readFleetIdentity(redis, namespace).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  if (identity === undefined) return void (await close());
  const keyspace = toKeyspace(namespace, identity.fleetId);
  const context = { redis, namespace: keyspace, fleet: fleetKeys(keyspace) };
  return {
    protocol: identity.protocol,
    hosts: () => listHosts(context),
    drainHost: (id, options) => drainHost(context, id, options),
    close,
  };
}
