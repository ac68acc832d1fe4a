import { setTimeout as delay } from 'node:timers/promises';
import type { Lease } from './leases.ts';

const POLL_MS = 100;

/** Returns whether the lease is held, after a renewal if necessary, as this process may have been suspended. */
export function untilHeld(lease: Lease, signal: AbortSignal): boolean | Promise<boolean> {
  return lease.held() ? !signal.aborted : waitUntilHeld(lease, signal);
}

async function waitUntilHeld(lease: Lease, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted && !lease.held()) await delay(POLL_MS, undefined, { signal }).catch(() => {});
  return !signal.aborted;
}
