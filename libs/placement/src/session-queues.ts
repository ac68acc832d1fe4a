import { abortable } from '@shellfleet/concurrency';
import { encodeWakeUp, type FleetKeys } from '@shellfleet/protocol';
import { REDIS_DEADLINE_MS } from '@shellfleet/redis';
import type { Queue } from '@shellfleet/vendor/bullmq';
import type { Redis } from 'ioredis';
import type { PlacementClass } from './placement.ts';
import { classOf, jobIdOf, type NewSessionJob, queueOf, type SessionJob } from './session-job.ts';

/**
 * The BullMQ queues of sessions, one for each placement class and tenant, on one connection. BullMQ is loaded on first
 * use. Only private members have its types, which are not in the published declarations.
 */
export class SessionQueues {
  readonly #redis: Redis;
  readonly #fleet: FleetKeys;
  readonly #opened = new Map<string, Promise<Queue>>();

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
    await (await this.#of(name)).add('session', job.data, options);
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
    await (await this.#of(name)).remove(jobId);
  }

  /** Tells whether the session has a job, and lists its queue, in case that its producer died before it noted it. */
  async has(job: SessionJob | NewSessionJob): Promise<boolean> {
    const name = queueOf(job);
    const hasJob = (await (await this.#of(name)).getJob(jobIdOf(job))) !== undefined;
    if (hasJob) await this.#redis.lpush(this.#fleet.noted, name);
    return hasJob;
  }

  /** Counts the jobs that wait, and those that hosts hold. */
  async counts(name: string): Promise<{ waiting: number; held: number }> {
    const {
      wait = 0,
      prioritized = 0,
      active = 0,
    } = await (await this.#of(name)).getJobCounts('wait', 'prioritized', 'active');
    return { waiting: wait + prioritized, held: active };
  }

  /** Completes a job that the host holds. Throws BullMQ's error when it does not hold the job. */
  async complete(job: SessionJob, hostId: string): Promise<void> {
    const stored = await (await this.#of(queueOf(job))).getJob(jobIdOf(job));
    await stored?.moveToCompleted(null, hostId, false);
  }

  /** Puts a job of the host back at the front of its queue. Throws BullMQ's error when it does not hold the job. */
  async putBack(job: SessionJob, hostId: string): Promise<void> {
    const stored = await (await this.#of(queueOf(job))).getJob(jobIdOf(job));
    await stored?.moveToWait(hostId);
    await this.#redis.lpush(this.#fleet.noted, queueOf(job));
  }

  #of(name: string): Promise<Queue> {
    const known = this.#opened.get(name);
    if (known !== undefined) return known;
    const opening = this.#open(name);
    this.#opened.set(name, opening);
    // A queue that was opened during an outage keeps its failure. The next call opens another one.
    opening.catch(() => this.#opened.delete(name));
    return opening;
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
    await Promise.allSettled([...this.#opened.values()].map(async (queue) => (await queue).close()));
  }
}
