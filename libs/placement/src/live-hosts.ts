import { type FleetKeys, type HostBeat, hostBeatSchema, hostKeys, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

export async function readBeats(redis: Redis, fleet: FleetKeys): Promise<HostBeat[]> {
  const ids = await redis.zrange(fleet.hosts, '0', '-1');
  const texts = await Promise.all(ids.map((id) => redis.get(hostKeys(fleet.namespace, id).alive)));
  // A heartbeat that does not parse has expired, or is from an incompatible version.
  return texts.flatMap((text) => hostBeatSchema.safeParse(tryJson(text)).data ?? []);
}
