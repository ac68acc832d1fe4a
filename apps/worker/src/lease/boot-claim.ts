import { hostKeys, ShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/**
 * One live process per host id: the boot key names the process that may act as this host.
 * `machine` tells two machines with one id apart; on the same machine the lock file has already proven the process before dead.
 */
export interface BootClaim {
  hostId: string;
  machine: string;
  boot: string;
  ttlMs: number;
}

/** Claims the host id. Throws HOST_ID_TAKEN while another machine holds it. */
export async function claimHostId(redis: Redis, namespace: string, claim: BootClaim): Promise<void> {
  const key = hostKeys(namespace, claim.hostId).boot;
  const value = `${claim.machine} ${claim.boot}`;
  const before = await redis.get(key);
  if (before !== null && before.split(' ')[0] !== claim.machine) throw taken(claim.hostId);
  await redis.set(key, value, 'PX', claim.ttlMs);
}

/** Renews the claim; false when another process has it now. */
export async function renewHostId(redis: Redis, namespace: string, claim: BootClaim): Promise<boolean> {
  const key = hostKeys(namespace, claim.hostId).boot;
  const value = `${claim.machine} ${claim.boot}`;
  const before = await redis.get(key);
  if (before !== null && before !== value) return false;
  await redis.set(key, value, 'PX', claim.ttlMs);
  return true;
}

function taken(hostId: string): ShellfleetError {
  return new ShellfleetError(
    'HOST_ID_TAKEN',
    `Another machine runs a worker with the host id ${hostId}. Stop it, or give this one another id (SHELLFLEET_HOST_ID).`,
    { hostId },
  );
}
