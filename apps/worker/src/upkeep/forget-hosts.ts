import { type FleetKeys, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/**
 * Forgets hosts that were not seen for the retention, with everything that Redis has of them, and returns their ids. No session refers to
 * them any more: a generation whose owner is gone for so long has ended (UPKEEP-4), or its lease has.
 */
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
