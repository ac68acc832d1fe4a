import { setTimeout as delay } from 'node:timers/promises';
import type { Lease } from '../lease/leases.ts';

const POLL_MS = 100;

/**
 * Resolves to true when this host holds the lease by its own clock: at once, or after a renewal. False when the lease was lost (`signal`).
 * The reply that started an entry may reach a process that was suspended in between, when another host has the session.
 */
export async function untilHeld(lease: Lease, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted && !lease.held()) await delay(POLL_MS, undefined, { signal }).catch(() => {});
  return !signal.aborted;
}
