import type { SessionJob, SessionJobs } from '@shellfleet/admission';

// The leases of this host, as its own clock sees them.
//
// L1. A lease is held until `heldUntil`: the start of the last renewal that Redis confirmed, plus the lock, less a margin.
// L2. A host that cannot tell that it holds the lease starts nothing more.

const MARGIN = 0.9;

export interface Lease {
  readonly job: SessionJob;
  /** Whether this host may start something now. */
  held(): boolean;
  /** This host is the owner under the fence. The session's own grace became known when its spec was read. */
  own(fence: number, lockMs: number): void;
  end(): void;
}

export interface Leases {
  /** `onLost`: another host has the lock, or may have. */
  add(job: SessionJob, lockMs: number, onLost: () => void): Lease;
  renew(): Promise<void>;
}

interface HeldLease {
  job: SessionJob;
  fence?: number;
  lockMs: number;
  heldUntil: number;
  onLost: () => void;
}

export function createLeases(jobs: SessionJobs, clock: () => number = () => performance.now()): Leases {
  const held = new Map<string, HeldLease>();
  const keyOf = (job: SessionJob) => `${job.tenant}:${job.session}`;

  return {
    add(job, lockMs, onLost) {
      const lease: HeldLease = { job, lockMs, heldUntil: clock() + lockMs * MARGIN, onLost };
      held.set(keyOf(job), lease);
      return {
        job,
        held: () => held.get(keyOf(job)) === lease && clock() < lease.heldUntil,
        own(fence, next) {
          lease.fence = fence;
          // A shorter lock counts at once, a longer one from its first renewal on.
          lease.heldUntil = Math.min(lease.heldUntil, clock() + next * MARGIN);
          // In Redis too: if this host dies before its next beat, nobody waits longer for it than the session asked.
          if (next < lease.lockMs) void jobs.renew([{ job, lockMs: next }]).catch(() => {});
          lease.lockMs = next;
        },
        end() {
          if (held.get(keyOf(job)) === lease) held.delete(keyOf(job));
        },
      };
    },

    async renew() {
      const leases = [...held.values()];
      if (leases.length === 0) return;
      const startedAt = clock();
      const lost = new Set((await jobs.renew(leases)).map(keyOf));
      for (const lease of leases) {
        if (held.get(keyOf(lease.job)) !== lease) continue;
        if (lost.has(keyOf(lease.job))) {
          held.delete(keyOf(lease.job));
          lease.onLost();
        } else {
          lease.heldUntil = startedAt + lease.lockMs * MARGIN;
        }
      }
    },
  };
}
