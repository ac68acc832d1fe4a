import { hostKeys, ShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/**
 * Claim of a process to act as a host: one per host id, in Redis. It is refused only to another machine, because on one
 * machine the lock file has proved that the previous process is dead.
 */
export interface BootClaim {
  hostId: string;
  machine: string;
  /** Name of the process, a ULID. Of two processes of one machine, the later one has the greater name. */
  boot: string;
  ttlMs: number;
}

/** Claims the host id for `ttlMs`. Throws HOST_ID_TAKEN while another machine holds it. */
export async function claimHostId(redis: Redis, namespace: string, claim: BootClaim): Promise<void> {
  const before = await redis.get(hostKeys(namespace, claim.hostId).boot);
  if (before !== null && before.split(' ')[0] !== claim.machine) throw taken(claim.hostId);
  await renewHostId(redis, namespace, claim);
}

/** Tells whether no other process holds the host id. A dead process's claim may return with older data of Redis. */
export async function holdsHostId(redis: Redis, namespace: string, claim: BootClaim): Promise<boolean> {
  const holder = await redis.get(hostKeys(namespace, claim.hostId).boot);
  if (holder === null) return true;
  const [machine, boot = ''] = holder.split(' ');
  return machine === claim.machine && boot <= claim.boot;
}

/** Renews a claim that no other process holds, for `ttlMs`. */
export async function renewHostId(redis: Redis, namespace: string, claim: BootClaim): Promise<void> {
  await redis.set(hostKeys(namespace, claim.hostId).boot, claimValue(claim), 'PX', claim.ttlMs);
}

function claimValue({ machine, boot }: BootClaim): string {
  return `${machine} ${boot}`;
}

function taken(hostId: string): ShellfleetError {
  return new ShellfleetError(
    'HOST_ID_TAKEN',
    `Another machine runs a worker with the host id ${hostId}. Stop it, or give this one another id (SHELLFLEET_HOST_ID).`,
    { hostId },
  );
}
