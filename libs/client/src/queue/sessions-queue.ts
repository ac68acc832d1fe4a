import { encodeWakeUp, type FleetKeys, SESSIONS_QUEUE, sessionJobId } from '@shellfleet/protocol';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { SendWindow } from '../submit/send-window.ts';

/** Sessions that are counted for a position in the queue; further ones only know that they wait. */
const POSITIONS = 1_000;

/** Jobs that are being added at once. */
const JOBS_UNDER_WAY = 200;

export interface SessionRef {
  tenant: string;
  session: string;
}

/** The queue through which sessions get to hosts. It shares the producer's main connection: no connection of its own. */
export class SessionsQueue {
  readonly #redis: Redis;
  readonly #fleet: FleetKeys;
  readonly #adding = new Map<string, { running: Promise<void>; next?: Promise<void> }>();
  readonly #window = new SendWindow(JOBS_UNDER_WAY);
  #opened?: Queue;

  constructor(redis: Redis, fleet: FleetKeys) {
    this.#redis = redis;
    this.#fleet = fleet;
  }

  /**
   * Makes sure that the session has a job, and says so. Calls for one session share an addition that has not begun;
   * one that has may have looked before the caller's entry was there, so it does not count.
   */
  ensureJob(ref: SessionRef, priority: number): Promise<void> {
    const jobId = sessionJobId(ref.tenant, ref.session);
    const current = this.#adding.get(jobId);
    if (current === undefined) {
      const running = this.#window.enter(() => this.#add(jobId, priority)).finally(() => this.#adding.delete(jobId));
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

  /** Waits for additions that are under way. */
  async settled(): Promise<void> {
    while (this.#adding.size > 0) await Promise.allSettled([...this.#adding.values()].map(({ running }) => running));
  }

  async #add(jobId: string, priority: number): Promise<void> {
    // The wake-up must follow the job: `add` does work of its own before it writes.
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
      // Failures reach whoever made the call.
      this.#opened.on('error', () => {});
    }
    return this.#opened;
  }
}
