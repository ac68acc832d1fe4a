import { type FleetKeys, hostKeys, PROTOCOL_VERSION, ShellfleetError, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { z } from 'zod';

/** The only part of a heartbeat that every version understands. */
const versionedSchema = z.object({ protocol: z.number() });

/** Throws PROTOCOL_MISMATCH while another live host of the fleet has another protocol version: they would misread each other's keys. */
export async function refuseOtherProtocol(redis: Redis, fleet: FleetKeys, hostId: string): Promise<void> {
  const others = (await redis.zrange(fleet.hosts, '0', '-1')).filter((other) => other !== hostId);
  const beats = await Promise.all(others.map((other) => redis.get(hostKeys(fleet.namespace, other).alive)));
  for (const [index, beat] of beats.entries()) {
    const theirs = versionedSchema.safeParse(tryJson(beat)).data?.protocol;
    if (theirs !== undefined && theirs !== PROTOCOL_VERSION) throw mismatch(others[index] as string, theirs);
  }
}

function mismatch(otherHost: string, theirs: number): ShellfleetError {
  return new ShellfleetError(
    'PROTOCOL_MISMATCH',
    `Host ${otherHost}, which is up, has version ${theirs} of the protocol in Redis, and this worker has ${PROTOCOL_VERSION}. Such an upgrade is not rolling: stop every worker of the fleet, then start the new ones.`,
    { hostId: otherHost, theirs, ours: PROTOCOL_VERSION },
  );
}
