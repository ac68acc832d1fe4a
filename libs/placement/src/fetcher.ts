import { type FleetKeys, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { lockFirstWaiting } from './bullmq/lock-job.ts';
import { type Look, lookAtQueues, type WaitingJob } from './bullmq/look.ts';
import { type PlacementClass, parseClass } from './placement.ts';
import { parseSessionJob, queueOf, type SessionJob } from './session-job.ts';
import type { SessionQueues } from './session-queues.ts';

// BullMQ hands out the head of a queue, but tenants must get fair parts of the slots, and a host must skip sessions
// that it cannot run. So the fetcher lists jobs of all queues in the order in which they are next (`look`), and locks
// the first one that the host can serve (`lock-job`), as BullMQ would.

/** Jobs that are listed first: enough for hosts that look at the same time to find a job each. */
const FIRST_PLACES = 16;
/** Jobs that one fetch lists further, an equal part of each line. The next fetch continues after them. */
const FURTHER_PLACES = 400;
/** Jobs that one call tries to lock. */
const MOST_TRIED = 8;
const MOST_VERDICTS = 10_000;

export interface FetcherOptions {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  /** classes that this host offers */
  offers: readonly PlacementClass[];
  /** length of a new lock, until the grace period of the session is known */
  lockMs: number;
  /** Returns the weights of tenants that have another one than 1. A tenant's fair part grows with its weight. */
  weights?(): Readonly<Record<string, number>>;
  /** Returns the most slots that tenants may hold at once, on all hosts together. Other tenants have no limit. */
  quotas?(): Readonly<Record<string, number>>;
  /** Tells whether this host can run a particular session of one generation. Default: every session. */
  serves?(job: SessionJob): Promise<boolean>;
}

type Candidate = WaitingJob & { job: SessionJob };

/** Takes jobs that this host can serve from the queues of the classes that it offers, as from one queue. */
export class Fetcher {
  readonly #options: FetcherOptions;
  readonly #queues: SessionQueues;
  /** Answers of `serves`, by queue, job and generation. */
  readonly #verdicts = new Map<string, boolean>();
  /** Position from which a further look reads on in a line, because this host can serve no job before it. */
  readonly #further = new Map<string, number>();

  constructor(options: FetcherOptions, queues: SessionQueues) {
    this.#options = options;
    this.#queues = queues;
  }

  /** Takes the next job of a tenant that is not passed over. */
  async fetch(passedOver: readonly string[] = []): Promise<SessionJob | undefined> {
    const first = await this.#takeFrom({ from: new Map(), places: FIRST_PLACES, shared: false, passedOver });
    if (first.taken !== undefined || first.listed.length < FIRST_PLACES) return first.taken;
    const further = await this.#takeFrom({ from: this.#further, places: FURTHER_PLACES, shared: true, passedOver });
    if (further.taken === undefined) this.#readOnBehind(further.listed);
    return further.taken;
  }

  /** Takes the first of the listed jobs that this host can serve. */
  async #takeFrom(
    look: Pick<Look, 'from' | 'places' | 'shared' | 'passedOver'>,
  ): Promise<{ taken: SessionJob | undefined; listed: WaitingJob[] }> {
    const { redis, fleet, hostId, lockMs, offers } = this.#options;
    for (;;) {
      const [weights, quotas] = [this.#options.weights?.() ?? {}, this.#options.quotas?.() ?? {}];
      const listed = await lookAtQueues(redis, fleet, { ...look, offers, weights, quotas });
      const servable = (await this.#servable(listed)).map((waiting) => {
        const { tenant } = waiting.job;
        return { ...waiting, quota: Object.hasOwn(quotas, tenant) ? quotas[tenant] : undefined };
      });
      if (servable.length === 0) return { taken: undefined, listed };
      const taken = servable[await lockFirstWaiting(redis, fleet, hostId, lockMs, servable)];
      if (taken !== undefined) return { taken: taken.job, listed };
      // Other hosts took all candidates, or their tenants reached their quotas: look again.
    }
  }

  async #servable(listed: readonly WaitingJob[]): Promise<Candidate[]> {
    const servable: Candidate[] = [];
    for (const waiting of listed) {
      const job = parseSessionJob({ id: waiting.id, data: tryJson(waiting.data) }, waiting.placementClass);
      // The id names no session of the queue's tenant, so no host can do anything with the job.
      if (job === undefined || queueOf(job) !== waiting.queue)
        // What else its tenant has written there may prevent this. Then the job stays, behind others of the tenant.
        await this.#queues.removeWaiting(waiting.queue, waiting.id).catch(() => {});
      else if (await this.#serves(waiting, job)) servable.push({ ...waiting, job });
      if (servable.length === MOST_TRIED) break;
    }
    return servable;
  }

  async #serves({ placementClass, queue, id }: WaitingJob, job: SessionJob): Promise<boolean> {
    const { serves } = this.#options;
    if (serves === undefined || parseClass(placementClass)?.particular !== true) return true;
    // A job without valid data is refused by the host that takes it.
    if (job.data === undefined) return true;
    const key = `${queue} ${id} ${job.data.generation}`;
    const known = this.#verdicts.get(key);
    if (known !== undefined) return known;
    const verdict = await serves(job);
    if (this.#verdicts.size >= MOST_VERDICTS) this.#verdicts.clear();
    this.#verdicts.set(key, verdict);
    return verdict;
  }

  /** Lets the next further look read on behind these jobs, and in a line that was read to its end from the start. */
  #readOnBehind(listed: readonly WaitingJob[]): void {
    const counts = new Map<string, number>();
    const behind = new Map(listed.map((job) => [job.line, job.behind]));
    for (const { line } of listed) counts.set(line, (counts.get(line) ?? 0) + 1);
    const before = new Map(this.#further);
    this.#further.clear();
    for (const [line, count] of counts) {
      if (behind.get(line) !== 0) this.#further.set(line, (before.get(line) ?? 0) + count);
    }
  }
}
