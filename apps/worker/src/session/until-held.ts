import { setTimeout as delay } from 'node:timers/promises';
import type { Lease } from '../lease/leases.ts';

const POLL_MS = 100;

/**
 * True, or resolves to it, when this host holds the lease by its own clock: at once, or after a renewal. False when the lease was lost (`signal`).
 * The reply that started an entry may reach a process that was suspended in between, when another host has the session.
 */
export function untilHeld(lease: Lease, signal: AbortSignal): boolean | Promise<boolean> {
  return lease.held() ? !signal.aborted : waitUntilHeld(lease, signal);
}

async function waitUntilHeld(lease: Lease, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted && !lease.held()) await delay(POLL_MS, undefined, { signal }).catch(() => {});
  return !signal.aborted;
}
