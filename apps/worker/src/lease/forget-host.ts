import { type FleetKeys, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Deletes a host that is not up, with its keys, so that it is listed nowhere. */
export async function forgetHost(redis: Redis, fleet: FleetKeys, host: string): Promise<void> {
  const { boot, callers, calls, cordon, drain, left, tools, uses } = hostKeys(fleet.namespace, host);
  await redis.multi().zrem(fleet.hosts, host).del(boot, callers, calls, cordon, drain, left, tools, uses).exec();
}
