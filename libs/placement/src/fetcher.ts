import { type FleetKeys, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { lockFirstWaiting } from './bullmq/lock-job.ts';
import { lookAtQueues, type WaitingJob } from './bullmq/look.ts';
import { joinQueues } from './join-queues.ts';
import { type PlacementClass, parseClass } from './placement.ts';
import { parseSessionJob, type SessionJob } from './session-job.ts';
import type { SessionQueues } from './session-queues.ts';

// BullMQ hands out the head of a queue, but a host must skip sessions that it cannot run. So the fetcher reads the
// first places of the queues (`look`), and locks the first job that the host can serve (`lock-job`), as BullMQ would.

/** Places of each queue that are read first: enough for hosts that look at the same time to find a job each. */
const FIRST_PLACES = 16;
/** Further places of a queue that one fetch reads. The next fetch continues after them, so that no session starves. */
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
  /** Tells whether this host can run a particular session of one generation. Default: every session. */
  serves?(job: SessionJob): Promise<boolean>;
}

type Candidate = WaitingJob & { placementClass: PlacementClass; job: SessionJob };
type Part = { placementClass: PlacementClass; from: number; count: number };

/** Takes jobs that this host can serve from the queues of the classes that it offers, as from one queue. */
export class Fetcher {
  readonly #options: FetcherOptions;
  readonly #queues: SessionQueues;
  /** Answers of `serves`, by class, job and generation. */
  readonly #verdicts = new Map<string, boolean>();
  /** Position from which the next fetch reads on in a queue, if it can serve none of the first places. */
  readonly #further = new Map<PlacementClass, number>();

  constructor(options: FetcherOptions, queues: SessionQueues) {
    this.#options = options;
    this.#queues = queues;
  }

  async fetch(): Promise<SessionJob | undefined> {
    const first = this.#options.offers.map((placementClass) => ({ placementClass, from: 0, count: FIRST_PLACES }));
    const { taken, further } = await this.#takeFrom(first);
    if (taken !== undefined || further.length === 0) return taken;
    return (await this.#takeFrom(further)).taken;
  }

  /**
   * Takes a job from these parts of queues. If this host can serve no job there, `further` has the parts to read next.
   */
  async #takeFrom(parts: readonly Part[]): Promise<{ taken: SessionJob | undefined; further: Part[] }> {
    const { redis, fleet } = this.#options;
    for (;;) {
      const queues = await lookAtQueues(redis, fleet, parts);
      const candidates = await Promise.all(queues.map(({ placementClass, jobs }) => this.#parse(placementClass, jobs)));
      const servable = await this.#servable(joinQueues(candidates));
      if (servable.length === 0) {
        const further = parts.flatMap((part, index) => this.#behind(part, queues[index]?.waiting ?? 0));
        return { taken: undefined, further };
      }
      const { hostId, lockMs } = this.#options;
      const taken = servable[await lockFirstWaiting(redis, fleet, hostId, lockMs, servable)];
      if (taken !== undefined) return { taken: taken.job, further: [] };
      // Other hosts took all candidates: look again.
    }
  }

  async #parse(placementClass: PlacementClass, jobs: readonly WaitingJob[]): Promise<Candidate[]> {
    const candidates: Candidate[] = [];
    for (const waiting of jobs) {
      const job = parseSessionJob({ id: waiting.id, data: tryJson(waiting.data) }, placementClass);
      if (job !== undefined) candidates.push({ ...waiting, placementClass, job });
      // The id names no session, so no host can do anything with the job.
      else await this.#queues.removeWaiting(placementClass, waiting.id);
    }
    return candidates;
  }

  async #servable(candidates: readonly Candidate[]): Promise<Candidate[]> {
    const servable: Candidate[] = [];
    for (const candidate of candidates) {
      if (await this.#serves(candidate)) servable.push(candidate);
      if (servable.length === MOST_TRIED) break;
    }
    return servable;
  }

  async #serves({ placementClass, id, job }: Candidate): Promise<boolean> {
    const { serves } = this.#options;
    if (serves === undefined || parseClass(placementClass)?.particular !== true) return true;
    // A job without valid data is refused by the host that takes it.
    if (job.data === undefined) return true;
    const key = `${placementClass} ${id} ${job.data.generation}`;
    const known = this.#verdicts.get(key);
    if (known !== undefined) return known;
    const verdict = await serves(job);
    if (this.#verdicts.size >= MOST_VERDICTS) this.#verdicts.clear();
    this.#verdicts.set(key, verdict);
    return verdict;
  }

  #behind({ placementClass, from }: Part, waiting: number): Part[] {
    if (from > 0) {
      const next = from + FURTHER_PLACES;
      this.#further.set(placementClass, next < waiting ? next : FIRST_PLACES);
      return [];
    }
    if (waiting <= FIRST_PLACES || parseClass(placementClass)?.particular !== true) return [];
    const at = this.#further.get(placementClass) ?? FIRST_PLACES;
    return [{ placementClass, from: at < waiting ? at : FIRST_PLACES, count: FURTHER_PLACES }];
  }
}
