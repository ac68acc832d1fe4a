import { type FleetKeys, type HostBeat, hostBeatSchema, hostKeys, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Reads the heartbeats of the live hosts, by host id. */
export async function readLiveHosts(redis: Redis, fleet: FleetKeys): Promise<Map<string, HostBeat>> {
  const ids = await redis.zrange(fleet.hosts, '0', '-1');
  const texts = await Promise.all(ids.map((id) => redis.get(hostKeys(fleet.namespace, id).alive)));
  // A heartbeat that does not parse has expired, or is from an incompatible version.
  const beats = texts.map((text) => hostBeatSchema.safeParse(tryJson(text)).data);
  return new Map(ids.flatMap((id, index) => (beats[index] === undefined ? [] : [[id, beats[index]]])));
}

export async function readBeats(redis: Redis, fleet: FleetKeys): Promise<HostBeat[]> {
  return [...(await readLiveHosts(redis, fleet)).values()];
}
