import { type FleetKeys, fleetKeys, type HostInfo, toKeyspace } from '@shellfleet/protocol';
import { connectRedis, readFleetIdentity } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type DrainOptions, drainHost } from './drain-host.ts';
import { listHosts } from './list-hosts.ts';

/** The hosts of a fleet, which can be drained before the fleet is replaced. */
export class FleetHosts {
  readonly #context: { redis: Redis; namespace: string; fleet: FleetKeys };

  /** Version of the protocol of the fleet's keys. */
  readonly protocol: number;

  private constructor(redis: Redis, namespace: string, protocol: number) {
    this.#context = { redis, namespace, fleet: fleetKeys(namespace) };
    this.protocol = protocol;
  }

  /** Connects to a fleet of any version, if the namespace has one. Rejects with QUEUE_UNAVAILABLE. */
  static async connect(redisUrl: string, namespace: string): Promise<FleetHosts | undefined> {
    const { redis } = await connectRedis(redisUrl, 'producer', 'shellfleet-hosts');
    const identity = await readFleetIdentity(redis, namespace).catch((error: unknown) => {
      redis.disconnect();
      throw error;
    });
    if (identity !== undefined)
      return new FleetHosts(redis, toKeyspace(namespace, identity.fleetId), identity.protocol);
    redis.disconnect();
    return undefined;
  }

  /** Lists the hosts, including hosts that are not reachable. */
  hosts(): Promise<HostInfo[]> {
    return listHosts(this.#context);
  }

  /** Drains a host: it takes no new session, and its running commands end. */
  drainHost(id: string, options?: DrainOptions): Promise<void> {
    return drainHost(this.#context, id, options);
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    this.#context.redis.disconnect();
  }
}
