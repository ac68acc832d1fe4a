import { encodeWakeUp, type FleetKeys, SESSIONS_QUEUE, sessionJobId } from '@shellfleet/protocol';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';

/** The most sessions whose position in the queue is reported. A session behind them is reported without a position. */
const POSITIONS = 1_000;

/** Limits how many additions are in flight at once. */
export interface AddLimit {
  enter<T>(call: () => Promise<T>): Promise<T>;
}

export interface SessionRef {
  tenant: string;
  session: string;
}

/** A producer's side of the sessions queue: adds jobs and reads the order of those that wait. It shares the producer's main connection. */
export class SessionsQueue {
  readonly #redis: Redis;
  readonly #fleet: FleetKeys;
  readonly #adding = new Map<string, { running: Promise<void>; next?: Promise<void> }>();
  readonly #limit: AddLimit;
  #opened?: Queue;

  constructor(redis: Redis, fleet: FleetKeys, limit: AddLimit) {
    this.#redis = redis;
    this.#fleet = fleet;
    this.#limit = limit;
  }

  /**
   * Adds a job for the session unless it has one, and wakes the hosts. Calls for one session share an addition that has not begun.
   * They never share one that has begun: it may have found the old job just before that was removed.
   */
  ensureJob(ref: SessionRef, priority: number): Promise<void> {
    const jobId = sessionJobId(ref.tenant, ref.session);
    const current = this.#adding.get(jobId);
    if (current === undefined) {
      const running = this.#limit.enter(() => this.#add(jobId, priority)).finally(() => this.#adding.delete(jobId));
      this.#adding.set(jobId, { running });
      return running;
    }
    current.next ??= current.running.catch(() => {}).then(() => this.ensureJob(ref, priority));
    return current.next;
  }

  /** Session job ids in the order in which hosts will take them. */
  async waiting(): Promise<string[]> {
    return this.#queue().getRanges(['waiting', 'prioritized'], 0, POSITIONS - 1, true);
  }

  /** Resolves when no addition is in flight. */
  async settled(): Promise<void> {
    while (this.#adding.size > 0) await Promise.allSettled([...this.#adding.values()].map(({ running }) => running));
  }

  async #add(jobId: string, priority: number): Promise<void> {
    // The wake-up must follow the job, and `add` does work of its own before it writes.
    await this.#queue().add('session', {}, { jobId, removeOnComplete: true, removeOnFail: true, priority });
    await this.#redis.publish(this.#fleet.sessionsWakeUps, encodeWakeUp({ type: 'sessions' }));
  }

  #queue(): Queue {
    if (this.#opened === undefined) {
      this.#opened = new Queue(SESSIONS_QUEUE, {
        connection: this.#redis,
        prefix: this.#fleet.admission,
        streams: { events: { maxLen: 0 } },
      });
      // A failure rejects the call that met it.
      this.#opened.on('error', () => {});
    }
    return this.#opened;
  }
}
