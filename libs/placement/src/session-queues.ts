import { encodeWakeUp, type FleetKeys, sessionsQueue } from '@shellfleet/protocol';
import type { Queue } from '@shellfleet/vendor/bullmq';
import type { Redis } from 'ioredis';
import type { PlacementClass } from './placement.ts';
import { classOf, jobIdOf, type NewSessionJob, parseSessionJob, type SessionJob } from './session-job.ts';

/**
 * The BullMQ queues of sessions, one for each placement class, on one connection. BullMQ is loaded on first use. Only
 * private members have its types, which are not in the published declarations.
 */
export class SessionQueues {
  readonly #redis: Redis;
  readonly #fleet: FleetKeys;
  readonly #opened = new Map<PlacementClass, Promise<Queue>>();

  constructor(redis: Redis, fleet: FleetKeys) {
    this.#redis = redis;
    this.#fleet = fleet;
  }

  /** Adds a job behind all jobs of its priority, unless the session has one in its class, then wakes the hosts. */
  async add(job: NewSessionJob): Promise<void> {
    const { priority } = job.data;
    const options = { jobId: jobIdOf(job), removeOnComplete: true, removeOnFail: true, priority };
    const placementClass = classOf(job);
    // The class is stored before the job, so that every job can be found by its class.
    await this.noteClasses([placementClass]);
    await (await this.#of(placementClass)).add('session', job.data, options);
    // The wake-up must follow the job, which `add` writes only after other work.
    await this.wakeHosts(placementClass);
  }

  async wakeHosts(placementClass: PlacementClass): Promise<void> {
    await this.#redis.publish(this.#fleet.sessionsWakeUps, encodeWakeUp({ type: 'sessions', placementClass }));
  }

  /** Lists the classes whose queues may hold jobs. */
  classes(): Promise<PlacementClass[]> {
    return this.#redis.smembers(this.#fleet.classes);
  }

  async noteClasses(names: readonly PlacementClass[]): Promise<void> {
    if (names.length > 0) await this.#redis.sadd(this.#fleet.classes, ...names);
  }

  /** Removes a job, unless a host holds it. */
  async removeWaiting(name: PlacementClass, jobId: string): Promise<void> {
    await (await this.#of(name)).remove(jobId);
  }

  async has(job: SessionJob | NewSessionJob): Promise<boolean> {
    return (await (await this.#of(classOf(job))).getJob(jobIdOf(job))) !== undefined;
  }

  /** Lists at most `most` job ids, in the order in which hosts take them. */
  async waiting(name: PlacementClass, most: number): Promise<string[]> {
    return (await this.#of(name)).getRanges(['waiting', 'prioritized'], 0, most - 1, true);
  }

  /** Lists the jobs that hosts hold. Those whose ids name no session are left out. */
  async active(name: PlacementClass): Promise<SessionJob[]> {
    const jobs = await (await this.#of(name)).getActive();
    return jobs.flatMap((job) => parseSessionJob(job, name) ?? []);
  }

  /** Completes a job that the host holds. Throws BullMQ's error when it does not hold the job. */
  async complete(job: SessionJob, hostId: string): Promise<void> {
    const stored = await (await this.#of(job.placementClass)).getJob(jobIdOf(job));
    await stored?.moveToCompleted(null, hostId, false);
  }

  /** Puts a job of the host back at the front of its queue. Throws BullMQ's error when it does not hold the job. */
  async putBack(job: SessionJob, hostId: string): Promise<void> {
    const stored = await (await this.#of(job.placementClass)).getJob(jobIdOf(job));
    await stored?.moveToWait(hostId);
  }

  #of(name: PlacementClass): Promise<Queue> {
    const opening = this.#opened.get(name) ?? this.#open(name);
    this.#opened.set(name, opening);
    return opening;
  }

  /** Opens a queue. Most processes that submit commands need none, because their sessions have a host. */
  async #open(name: PlacementClass): Promise<Queue> {
    const { Queue } = await import('@shellfleet/vendor/bullmq');
    const queue = new Queue(sessionsQueue(name), {
      connection: this.#redis,
      prefix: this.#fleet.sessionQueues,
      streams: { events: { maxLen: 0 } },
    });
    // A failure also rejects the call during which it occurs, so this event is ignored.
    queue.on('error', () => {});
    return queue;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#opened.values()].map(async (queue) => (await queue).close()));
  }
}
