import { relock, toQueueError } from '@shellfleet/mailbox';
import {
  encodeWakeUp,
  type FleetKeys,
  parseSessionJobId,
  SESSIONS_QUEUE,
  sessionJobId,
  sessionJobLockKey,
} from '@shellfleet/protocol';
import { createRedisBackend, type Job, Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';

// A host's side of the sessions queue: BullMQ admits sessions to hosts, and the lock of a job is the lease.
//
// ADMISSION-1. A session that holds a slot has one active job. The token of its lock is the host's id, so a restarted worker still owns it.
// ADMISSION-2. A job whose lock ran out (stalled) is handed out again: its next host takes the session over. It never fails.

/** A session that this host may run, because the host holds the lock of its job. */
export interface SessionJob {
  tenant: string;
  session: string;
}

interface HeldLock {
  job: SessionJob;
  lockMs: number;
  fence?: number;
}

export interface SessionJobs {
  /** Takes the next waiting session and locks its job for `lockMs`. Undefined when none waits. */
  fetch(): Promise<SessionJob | undefined>;
  /** Sessions whose lock names this host: those that it owned before it restarted. */
  listOwn(): Promise<SessionJob[]>;
  /**
   * Extends the locks, with one call per distinct duration. A lock that ran out is set again if no other host took the job since.
   * Returns the sessions whose lock this host has lost. `fence`: the fence under which this host owns the session already.
   */
  renew(leases: readonly HeldLock[]): Promise<SessionJob[]>;
  /** Ends the job; the session then holds no slot. Throws QUEUE_UNAVAILABLE. */
  remove(job: SessionJob): Promise<void>;
  /** Adds a job unless the session has one. Throws QUEUE_UNAVAILABLE. */
  ensure(job: SessionJob, priority: number): Promise<void>;
  /** Whether the session has a job, waiting or active. */
  has(job: SessionJob): Promise<boolean>;
  close(): Promise<void>;
}

export interface SessionJobsOptions {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  /** length of a lock just taken, until the session's own grace period is known */
  lockMs: number;
  /** how often stalled jobs are searched for */
  stalledIntervalMs: number;
}

export async function createSessionJobs(options: SessionJobsOptions): Promise<SessionJobs> {
  const { redis, fleet, hostId } = options;
  const shared = { connection: redis, prefix: fleet.admission };
  const queue = new Queue(SESSIONS_QUEUE, {
    ...shared,
    streams: { events: { maxLen: 0 } },
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  const workerOptions = {
    ...shared,
    autorun: false,
    name: hostId,
    lockDuration: options.lockMs,
    stalledInterval: options.stalledIntervalMs,
    // ADMISSION-2: however often its host is lost, a session's job never fails.
    maxStalledCount: 1_000_000,
  };
  // Without this factory BullMQ opens a second connection for blocking calls, of which there are none.
  const worker = new Worker(SESSIONS_QUEUE, null, workerOptions, (name, opts) => createRedisBackend(name, opts));
  // A failure rejects the call that met it.
  queue.on('error', () => {});
  worker.on('error', () => {});
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  await worker.startStalledCheckTimer();

  return {
    async fetch() {
      const job = await worker.getNextJob(hostId, { block: false });
      return job === undefined ? undefined : toSessionJob(job);
    },

    async listOwn() {
      const jobs = (await queue.getActive()).map(toSessionJob).filter((job) => job !== undefined);
      if (jobs.length === 0) return [];
      const locks = await redis.mget(jobs.map((job) => sessionJobLockKey(fleet, toJobId(job))));
      return jobs.filter((_, index) => locks[index] === hostId);
    },

    async renew(leases) {
      const byDuration = Map.groupBy(leases, (lease) => lease.lockMs);
      const lost = await Promise.all([...byDuration].map(([lockMs, group]) => renewAlike(group, lockMs)));
      return lost.flat();
    },

    async remove(job) {
      try {
        const stored = await queue.getJob(toJobId(job));
        await stored?.moveToCompleted(null, hostId, false);
      } catch (error) {
        // The job is gone, or another host has it: in both cases this host has nothing to end.
        if (!isNotOurs(error)) throw toQueueError(error);
      }
    },

    async ensure(job, priority) {
      try {
        await queue.add('session', {}, { jobId: toJobId(job), priority });
        await redis.publish(fleet.sessionsWakeUps, encodeWakeUp({ type: 'sessions' }));
      } catch (error) {
        throw toQueueError(error);
      }
    },

    async has(job) {
      return (await queue.getJob(toJobId(job))) !== undefined;
    },

    async close() {
      await Promise.allSettled([worker.close(true), queue.close()]);
    },
  };

  async function renewAlike(leases: HeldLock[], lockMs: number): Promise<SessionJob[]> {
    const ids = leases.map(({ job }) => toJobId(job));
    const refused = new Set(
      await worker.extendJobLocks(
        ids,
        ids.map(() => hostId),
        lockMs,
      ),
    );
    const lost: SessionJob[] = [];
    for (const { job, fence } of leases) {
      if (!refused.has(toJobId(job))) continue;
      const kept = fence !== undefined && (await relock(redis, fleet, job, { fence, host: hostId }, lockMs));
      if (!kept) lost.push(job);
    }
    return lost;
  }
}

function toJobId(job: SessionJob): string {
  return sessionJobId(job.tenant, job.session);
}

function toSessionJob(job: Job): SessionJob | undefined {
  return job.id === undefined ? undefined : parseSessionJobId(job.id);
}

/** BullMQ's codes: no such job, no lock, not active, another's lock. */
function isNotOurs(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return code === -1 || code === -2 || code === -3 || code === -6;
}
