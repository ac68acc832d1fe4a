import { type FleetKeys, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Deletes hosts that were not seen for the retention, and returns their ids. UPKEEP-4 has ended their generations. */
export async function forgetHosts(redis: Redis, fleet: FleetKeys, retentionMs: number): Promise<string[]> {
  const silent = await redis.zrangebyscore(fleet.hosts, '-inf', Date.now() - retentionMs);
  const forgotten: string[] = [];
  for (const host of silent) {
    const { alive, boot, calls, drain, left, tools } = hostKeys(fleet.namespace, host);
    if ((await redis.exists(alive)) === 1) continue;
    await redis.multi().zrem(fleet.hosts, host).del(boot, calls, drain, left, tools).exec();
    forgotten.push(host);
  }
  return forgotten;
}
