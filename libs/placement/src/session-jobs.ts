import { toQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Acquired, acquire } from './bullmq/acquire.ts';
import { declareOwned } from './bullmq/declare-owned.ts';
import { NOT_HELD } from './bullmq/keys.ts';
import { listOwn } from './bullmq/list-own.ts';
import { publishDemand } from './bullmq/look.ts';
import { type Lock, renew } from './bullmq/renew.ts';
import { requeue } from './bullmq/requeue.ts';
import { Fetcher, type FetcherOptions, type FetchLimits } from './fetcher.ts';
import { jobIdOf, type NewSessionJob, queueOf, type SessionJob } from './session-job.ts';
import { SessionQueues } from './session-queues.ts';

// A host's side of the session queues. The lock of a session's job is the lease of its host.
// PLACEMENT-1. A session with a slot has one active job. The job's lock has the host's id, so a restarted worker still
//     owns the job.
// PLACEMENT-2. A job whose lock ran out is handed out again, and its next host adopts the session. BullMQ's check for
//     stalled jobs is not used: a check from before an outage could run before hosts have renewed their locks.
// PLACEMENT-3. A host fetches only from queues of classes that it offers. It asks in which classes sessions wait, and
//     names none of its own before. Sessions that it cannot run keep their places.
// PLACEMENT-4. All queues share the connection that the host gives. No call here blocks it.

type HeldLock = Lock & { job: SessionJob };

export interface SessionJobs {
  /**
   * Locks the next waiting sessions that this host can run: at most an equal part for each live host, so that no host
   * takes all sessions of a burst. Resolves with none if none waits.
   */
  fetch(limits?: FetchLimits): Promise<SessionJob[]>;
  /** Time until `fetch` takes the first session that it left to hosts that meet its wishes. Undefined without one. */
  nextWishEndMs(): number | undefined;
  /** Lists the sessions whose lock names this host, such as those that it owned before it restarted. */
  listOwn(): Promise<SessionJob[]>;
  /** Requests a fence for a session whose job this host has locked. Throws QUEUE_UNAVAILABLE. */
  acquire(job: SessionJob): Promise<Acquired>;
  /** Extends the locks over `via`, or sets them again if no other host has the job. Returns the lost sessions. */
  renew(leases: readonly HeldLock[], via?: Redis): Promise<SessionJob[]>;
  /** Restores jobs, locks and owners. Returns the sessions of other hosts. Without a fence, locks are only renewed. */
  declare(leases: readonly HeldLock[], via: Redis): Promise<SessionJob[]>;
  /** Moves jobs whose lock ran out to the front of their queues, once per interval for all hosts. Returns how many. */
  requeueStalled(): Promise<number>;
  /** Tells clients what all tenants hold and wait for, once a second for all hosts. */
  publishDemand(): Promise<void>;
  /** Completes the job, so the session holds no slot. Throws QUEUE_UNAVAILABLE. */
  remove(job: SessionJob): Promise<void>;
  /** Puts the job back at the front of its queue, and wakes the hosts. Throws QUEUE_UNAVAILABLE. */
  putBack(job: SessionJob): Promise<void>;
  /** Adds a job unless the session has one in its class. Throws QUEUE_UNAVAILABLE. */
  ensure(job: NewSessionJob): Promise<void>;
  /** Removes a job that no host holds. Throws QUEUE_UNAVAILABLE. */
  drop(job: NewSessionJob): Promise<void>;
  /** Tells whether the session has a job in its class, waiting or active. */
  has(job: NewSessionJob): Promise<boolean>;
  close(): Promise<void>;
}

export interface SessionJobsOptions extends FetcherOptions {
  /** shortest time between two searches for jobs whose lock ran out, over all hosts */
  stalledIntervalMs: number;
}

export async function createSessionJobs(options: SessionJobsOptions): Promise<SessionJobs> {
  const { redis, fleet, hostId } = options;
  const queues = new SessionQueues(redis, fleet);
  const fetcher = new Fetcher(options, queues);

  return {
    fetch: (limits = {}) => fetcher.fetch(limits),
    nextWishEndMs: () => fetcher.nextWishEndMs,

    listOwn: () => listOwn(redis, fleet, hostId),

    acquire: (job) => acquire(redis, fleet, job, hostId, options.lockMsOf(job.placementClass)),

    async renew(leases, via = redis) {
      const { lost } = await renew(via, fleet, hostId, leases);
      return lost.map(({ job }) => job);
    },

    async declare(leases, via) {
      const owned = leases.flatMap((lease) =>
        lease.fence === undefined ? [] : [{ ...lease, fence: lease.fence, ...toStored(lease.job) }],
      );
      const others = leases.filter(({ fence }) => fence === undefined);
      const lost = await declareOwned(via, fleet, hostId, owned);
      const lostOthers = others.length === 0 ? [] : (await renew(via, fleet, hostId, others)).lost;
      return [...lost, ...lostOthers].map(({ job }) => job);
    },

    async requeueStalled() {
      const { sessionQueues: prefix, queues: names, requeued: guard, waitingQueues: waiting } = fleet;
      return requeue(redis, { prefix, names, guard, waiting }, options.stalledIntervalMs);
    },

    async publishDemand() {
      await publishDemand(redis, fleet, { weights: options.weights?.() ?? {}, quotas: options.quotas?.() ?? {} });
    },

    async remove(job) {
      try {
        await queues.complete(job, hostId);
      } catch (error) {
        // The job is gone, or another host has it. In both cases this host has nothing to complete.
        if (!isNotHeld(error)) throw toQueueError(error);
      }
    },

    async putBack(job) {
      try {
        await queues.putBack(job, hostId);
        await queues.wakeHosts(job.placementClass);
      } catch (error) {
        if (!isNotHeld(error)) throw toQueueError(error);
      }
    },

    async ensure(job) {
      await queues.add(job).catch(throwQueueError);
    },

    async drop(job) {
      await queues.removeWaiting(queueOf(job), jobIdOf(job)).catch(throwQueueError);
    },

    has: (job) => queues.has(job),

    async close() {
      await queues.close();
    },
  };
}

/** Returns the data of a job as it is stored. A job without valid data is refused by the host that fetches it. */
function toStored({ data }: SessionJob): { jobData: string; priority: number } {
  return { jobData: JSON.stringify(data ?? {}), priority: data?.priority ?? 0 };
}

function throwQueueError(error: unknown): never {
  throw toQueueError(error);
}

/** Tells whether BullMQ refused to end or return a job because this host does not hold it. */
function isNotHeld(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return Object.values<unknown>(NOT_HELD).includes(code);
}
