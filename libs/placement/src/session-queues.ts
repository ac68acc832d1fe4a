import { abortable } from '@shellfleet/concurrency';
import { encodeWakeUp, type FleetKeys } from '@shellfleet/protocol';
import { REDIS_DEADLINE_MS } from '@shellfleet/redis';
import type { Queue } from '@shellfleet/vendor/bullmq';
import type { Redis } from 'ioredis';
import type { PlacementClass } from './placement.ts';
import { classOf, jobIdOf, type NewSessionJob, queueOf, type SessionJob } from './session-job.ts';

/** Number of BullMQ's objects for queues that stay open, which take 7 KB each. */
const MOST_OPEN = 100;

interface OpenQueue {
  queue: Promise<Queue>;
  /** Number of calls that use it. */
  users: number;
}

/**
 * The BullMQ queues of sessions, one for each placement class and tenant, on one connection. BullMQ is loaded on first
 * use. Only private members have its types, which are not in the published declarations.
 */
export class SessionQueues {
  readonly #redis: Redis;
  readonly #fleet: FleetKeys;
  /** The queue that was used last is the last one. */
  readonly #opened = new Map<string, OpenQueue>();

  constructor(redis: Redis, fleet: FleetKeys) {
    this.#redis = redis;
    this.#fleet = fleet;
  }

  /** Adds a job behind all jobs of its priority, unless the session has one in its class, then wakes the hosts. */
  async add(job: NewSessionJob): Promise<void> {
    const { priority } = job.data;
    const options = { jobId: jobIdOf(job), removeOnComplete: true, removeOnFail: true, priority };
    const name = queueOf(job);
    // The queue is noted before the job, because no host finds a job whose queue is not noted.
    await this.#redis.lpush(this.#fleet.noted, name);
    await this.#with(name, (queue) => queue.add('session', job.data, options));
    // The queue is noted again, because a host that looked in between forgot it as empty. The wake-up follows the job,
    // which `add` writes only after other work.
    await Promise.all([this.#redis.lpush(this.#fleet.noted, name), this.wakeHosts(classOf(job))]);
  }

  async wakeHosts(placementClass: PlacementClass): Promise<void> {
    await this.#redis.publish(this.#fleet.sessionsWakeUps, encodeWakeUp({ type: 'sessions', placementClass }));
  }

  /** Lists the queues that may hold jobs. */
  names(): Promise<string[]> {
    return this.#redis.zrange(this.#fleet.queues, '0', '-1');
  }

  /** Removes a job, unless a host holds it. */
  async removeWaiting(name: string, jobId: string): Promise<void> {
    await this.#with(name, (queue) => queue.remove(jobId));
  }

  /** Tells whether the session has a job, and lists its queue, in case that its producer died before it noted it. */
  async has(job: SessionJob | NewSessionJob): Promise<boolean> {
    const name = queueOf(job);
    const hasJob = (await this.#with(name, (queue) => queue.getJob(jobIdOf(job)))) !== undefined;
    if (hasJob) await this.#redis.lpush(this.#fleet.noted, name);
    return hasJob;
  }

  /** Counts the jobs that wait, and those that hosts hold. */
  async counts(name: string): Promise<{ waiting: number; held: number }> {
    const {
      wait = 0,
      prioritized = 0,
      active = 0,
    } = await this.#with(name, (queue) => queue.getJobCounts('wait', 'prioritized', 'active'));
    return { waiting: wait + prioritized, held: active };
  }

  /** Completes a job that the host holds. Throws BullMQ's error when it does not hold the job. */
  async complete(job: SessionJob, hostId: string): Promise<void> {
    await this.#with(queueOf(job), async (queue) =>
      (await queue.getJob(jobIdOf(job)))?.moveToCompleted(null, hostId, false),
    );
  }

  /** Puts a job of the host back at the front of its queue. Throws BullMQ's error when it does not hold the job. */
  async putBack(job: SessionJob, hostId: string): Promise<void> {
    await this.#with(queueOf(job), async (queue) => (await queue.getJob(jobIdOf(job)))?.moveToWait(hostId));
    await this.#redis.lpush(this.#fleet.noted, queueOf(job));
  }

  /** Calls `use` with a queue, which stays open until then. */
  async #with<T>(name: string, use: (queue: Queue) => Promise<T>): Promise<T> {
    const opened = this.#opened.get(name) ?? { queue: this.#open(name), users: 0 };
    this.#opened.delete(name);
    this.#opened.set(name, opened);
    opened.users += 1;
    try {
      const queue = await opened.queue.catch((error: unknown) => {
        // A queue that was opened during an outage keeps its failure. The next call opens another one.
        if (this.#opened.get(name) === opened) this.#opened.delete(name);
        throw error;
      });
      return await use(queue);
    } finally {
      opened.users -= 1;
      this.#closeOthers();
    }
  }

  /** Closes the queues beyond the limit that no call uses, those first that were not used for the longest time. */
  #closeOthers(): void {
    for (const [name, { queue, users }] of this.#opened) {
      if (this.#opened.size <= MOST_OPEN) return;
      if (users > 0) continue;
      this.#opened.delete(name);
      queue.then((open) => open.close()).catch(() => {});
    }
  }

  /** Opens a queue. Most processes that submit commands need none, because their sessions have a host. */
  async #open(name: string): Promise<Queue> {
    const { Queue } = await import('@shellfleet/vendor/bullmq');
    const queue = new Queue(name, {
      connection: this.#redis,
      prefix: this.#fleet.sessionQueues,
      streams: { events: { maxLen: 0 } },
      // The version of Redis was checked when the process connected.
      skipVersionCheck: true,
    });
    // A failure also rejects the call during which it occurs, so this event is ignored.
    queue.on('error', () => {});
    try {
      // BullMQ waits for a connection without end.
      await abortable(queue.waitUntilReady(), AbortSignal.timeout(REDIS_DEADLINE_MS));
    } catch (error) {
      queue.close().catch(() => {});
      throw error;
    }
    return queue;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#opened.values()].map(async ({ queue }) => (await queue).close()));
  }
}
