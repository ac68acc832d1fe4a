import { type PlacementClass, parseClass, type SessionJob, type SessionJobs } from '@shellfleet/placement';
import { isMovable, POLICY_NAMES, type ResolvedSessionSpec } from '@shellfleet/protocol';

// The leases of this host, by its own clock.
//
// LEASE-1. A lease is held until `heldUntil`: the time at which the last confirmed renewal was sent, plus the lock,
//     less a margin. The time of the reply does not count, because Redis may have set the lock long before it.
// LEASE-2. A host that may have lost the lease starts no entry.
// LEASE-3. A lock is `LEASE_MS` longer than the session's grace. It is renewed often enough that less than that has
//     passed since its last renewal, so the lock of a host that dies lasts for the whole grace.
// LEASE-4. A session whose shell any worker can reach has no grace: the next worker loses nothing by adopting it soon.

/** Lock of a session's job without the session's grace, and expiry of the claim of a host id. */
export const LEASE_MS = 5_000;
/** Duration of a new lock, before the session's own grace is known. */
const FIRST_LOCK_MS = LEASE_MS + 60_000;
/** Share of a lock for which this host counts on it. The rest covers clocks that run at different speeds. */
const MARGIN = 0.9;
/** Most time between two renewals of a lock, and the share of the lock that may pass between them. */
const RENEW_EVERY = { ms: 3_000, share: 0.05 };

/** Returns whether any worker can reach the shells of a class. */
export function isMovableClass(placementClass: PlacementClass): boolean {
  const policy = POLICY_NAMES.find((name) => name === parseClass(placementClass)?.policy);
  return policy !== undefined && isMovable(policy);
}

/** Returns the duration of a new lock for a session of the class, before its own grace is known. */
export function firstLockMs(placementClass: PlacementClass): number {
  return isMovableClass(placementClass) ? LEASE_MS : FIRST_LOCK_MS;
}

/** Returns the duration of the lock of an owned session. */
export function lockMsOf({ policy, hostGraceMs }: Pick<ResolvedSessionSpec, 'policy' | 'hostGraceMs'>): number {
  return isMovable(policy.type) ? LEASE_MS : LEASE_MS + hostGraceMs;
}

export interface Lease {
  readonly job: SessionJob;
  /** Tells whether this host may start an entry now. */
  held(): boolean;
  /** Records that this host became the owner under `fence`. The session's grace decides `lockMs`, from now on. */
  own(fence: number, lockMs: number): void;
  /** Ends the renewals. The lock in Redis stays until it expires, or its job is removed. */
  end(): void;
}

export interface Leases {
  /** Number of leases that are renewed. */
  readonly size: number;
  /** Number of leases that were lost so far. */
  readonly lost: number;
  /** Adds a lease with a new lock. `onLost` is called once, when another host has the lock or may have it. */
  add(job: SessionJob, lockMs: number, onLost: () => void): Lease;
  /** Renews all leases. Rejects when Redis did not reply. `renewLocks` returns lost sessions. */
  renew(renewLocks: SessionJobs['renew']): Promise<void>;
  /**
   * Renews the leases that would otherwise expire too early (LEASE-3), and those that are new. Rejects when Redis did
   * not reply.
   */
  renewDue(): Promise<void>;
}

interface HeldLease {
  job: SessionJob;
  fence?: number;
  lockMs: number;
  heldUntil: number;
  /** Time from which the lease is due to be renewed. It is due at once when it is new, or its lock has changed. */
  dueAt: number;
  onLost: () => void;
}

/** Creates the leases of a host. `clock` is monotonic, in ms. */
export function createLeases(jobs: Pick<SessionJobs, 'renew'>, clock: () => number = () => performance.now()): Leases {
  const leases = new Map<string, HeldLease>();
  let lostCount = 0;

  const renew = async (renewed: readonly HeldLease[], renewLocks: SessionJobs['renew']) => {
    if (renewed.length === 0) return;
    // The lock of each lease when the renewal is sent. `own` may change that of a lease before the reply.
    const sentAt = clock();
    const locks = renewed.map(({ lockMs }) => lockMs);
    const lost = new Set((await renewLocks(renewed)).map(keyOf));
    for (const [index, lease] of renewed.entries()) {
      const sentMs = locks[index] ?? 0;
      if (leases.get(keyOf(lease.job)) !== lease) continue;
      if (lost.has(keyOf(lease.job))) {
        leases.delete(keyOf(lease.job));
        lostCount += 1;
        lease.onLost();
      } else {
        lease.heldUntil = sentAt + Math.min(lease.lockMs, sentMs) * MARGIN;
        if (lease.lockMs === sentMs) lease.dueAt = sentAt + Math.min(RENEW_EVERY.ms, sentMs * RENEW_EVERY.share);
      }
    }
  };

  return {
    get size() {
      return leases.size;
    },
    get lost() {
      return lostCount;
    },

    add(job, lockMs, onLost) {
      const lease: HeldLease = { job, lockMs, heldUntil: clock() + lockMs * MARGIN, dueAt: 0, onLost };
      const key = keyOf(job);
      leases.set(key, lease);
      return {
        job,
        held: () => leases.get(key) === lease && clock() < lease.heldUntil,
        own(fence, next) {
          lease.fence = fence;
          // A shorter lock counts at once, a longer lock from its first renewal on.
          lease.heldUntil = Math.min(lease.heldUntil, clock() + next * MARGIN);
          // The lock in Redis becomes shorter too, in case this host dies before its next renewal.
          if (next < lease.lockMs) void jobs.renew([{ job, lockMs: next }]).catch(() => {});
          lease.lockMs = next;
          lease.dueAt = 0;
        },
        end() {
          if (leases.get(key) === lease) leases.delete(key);
        },
      };
    },

    renew: (renewLocks) => renew([...leases.values()], renewLocks),

    async renewDue() {
      const now = clock();
      const due = [...leases.values()].filter(({ dueAt }) => now >= dueAt);
      await renew(due, (locks) => jobs.renew(locks));
    },
  };
}

function keyOf({ tenant, session }: SessionJob): string {
  return `${tenant}:${session}`;
}
