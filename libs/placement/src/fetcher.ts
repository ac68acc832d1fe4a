import { type FleetKeys, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { lockFirstWaiting } from './bullmq/lock-job.ts';
import { type Look, lookAtQueues, type WaitingJob } from './bullmq/look.ts';
import { type PlacementClass, parseClass } from './placement.ts';
import { parseSessionJob, queueOf, type SessionJob } from './session-job.ts';
import type { SessionQueues } from './session-queues.ts';

// BullMQ hands out the head of a queue, but tenants must get fair parts of the slots, and a host must skip sessions
// that it cannot run. So the fetcher lists jobs of all queues in the order in which they are next (`look`), and locks
// the first ones that the host can serve (`lock-job`), as BullMQ would. Of a burst, each host takes an equal part, so
// that those which look later get theirs.

/** Jobs that one fetch takes. More of them would keep Redis from other calls. */
const MOST_TAKEN = 32;
/** Jobs that are listed first, or twice those that the host takes: hosts that look at the same time find jobs too. */
const FIRST_PLACES = 16;
/** Jobs that one fetch lists further, an equal part of each line. The next fetch continues after them. */
const FURTHER_PLACES = 400;
/** Jobs that one call tries to lock beyond those that it takes, as other hosts may have locked some. */
const MORE_TRIED = 7;
const MOST_REMEMBERED = 10_000;
/** Number of served classes above which the host forgets them. */
const MOST_SERVED = 1_000;
/** How long a session is left to hosts that meet its wishes, from when it is the next one of its tenant. */
const WISH_MS = 2_000;

export interface FetcherOptions {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  /** Tells whether this host offers a class. */
  offers(name: PlacementClass): boolean;
  /** Returns the length of the new lock of a job, until the grace period of its session is known. */
  lockMsOf(placementClass: PlacementClass): number;
  /** Returns the weights of tenants that have another one than 1. A tenant's fair part grows with its weight. */
  weights?(): Readonly<Record<string, number>>;
  /** Returns the most slots that tenants may hold at once, on all hosts together. Other tenants have no limit. */
  quotas?(): Readonly<Record<string, number>>;
  /**
   * Tells whether this host can run a particular session of one generation, and which image the session names, if any.
   * Default: every session.
   */
  serves?(job: SessionJob): Promise<ServeVerdict>;
  /** Tells whether another host that can take the session meets more of its wishes. Default: never. */
  isWishedElsewhere?(job: SessionJob, image: string | undefined): Promise<boolean>;
}

export interface FetchLimits {
  /** Most sessions that the host takes; 1 by default. */
  most?: number;
  /** Tenants of which it takes none. */
  passedOver?: readonly string[];
}

export type ServeVerdict = boolean | { image: string };

type Candidate = WaitingJob & { job: SessionJob };

/** Takes jobs that this host can serve from the queues of the classes that it offers, as from one queue. */
export class Fetcher {
  readonly #options: FetcherOptions;
  readonly #queues: SessionQueues;
  /** Classes that this host offers, of those in which it has seen sessions wait. */
  readonly #served = new Set<PlacementClass>();
  /** Answers of `serves`, by queue, job and generation. */
  readonly #verdicts = new Map<string, ServeVerdict>();
  /** When this host first left a session to others for its wishes (ms, by the clock of Redis). Keys as above. */
  readonly #left = new Map<string, number>();
  #nextWishEndMs: number | undefined;
  /** Position from which a further look reads on in a line, because this host can serve no job before it. */
  readonly #further = new Map<string, number>();

  constructor(options: FetcherOptions, queues: SessionQueues) {
    this.#options = options;
    this.#queues = queues;
  }

  /** Time until this host takes the first session that the last fetch left to others. Undefined if it left none. */
  get nextWishEndMs(): number | undefined {
    return this.#nextWishEndMs;
  }

  /** Takes the next jobs, at most this host's part of those that wait. */
  async fetch({ most: wanted = 1, passedOver = [] }: FetchLimits): Promise<SessionJob[]> {
    this.#nextWishEndMs = undefined;
    // Labels give sessions many classes over time. Those in which sessions wait are found again.
    if (this.#served.size > MOST_SERVED) this.#served.clear();
    const most = Math.min(wanted, MOST_TAKEN);
    const places = Math.max(FIRST_PLACES, 2 * most);
    const first = await this.#takeFrom({ from: new Map(), places, shared: false, passedOver }, most);
    if (first.taken.length > 0 || first.listed.length < places) return first.taken;
    const furtherLook = { from: this.#further, places: FURTHER_PLACES, shared: true, passedOver };
    const further = await this.#takeFrom(furtherLook, most);
    if (further.taken.length === 0) this.#readOnBehind(further.listed);
    return further.taken;
  }

  /** Takes the first of the listed jobs that this host can serve. */
  async #takeFrom(
    look: Pick<Look, 'from' | 'places' | 'shared' | 'passedOver'>,
    wanted: number,
  ): Promise<{ taken: SessionJob[]; listed: WaitingJob[] }> {
    const { redis, fleet, hostId: host, lockMsOf } = this.#options;
    for (;;) {
      const [weights, quotas] = [this.#options.weights?.() ?? {}, this.#options.quotas?.() ?? {}];
      const served = [...this.#served];
      const { at, others, part, jobs } = await lookAtQueues(redis, fleet, { ...look, served, weights, quotas });
      // Sessions of these classes may be next, so the host looks again.
      if (this.#serveMore(others)) continue;
      const most = Math.min(wanted, part);
      const servable = (await this.#servable(jobs, at, most + MORE_TRIED)).map((waiting) => {
        const { tenant } = waiting.job;
        const quota = Object.hasOwn(quotas, tenant) ? quotas[tenant] : undefined;
        return { ...waiting, quota, lockMs: lockMsOf(waiting.placementClass) };
      });
      if (servable.length === 0) return { taken: [], listed: jobs };
      const taken = await lockFirstWaiting(redis, fleet, { host, most }, servable);
      if (taken.length > 0) return { taken: taken.map(({ job }) => job), listed: jobs };
      // Other hosts took all candidates, or their tenants reached their quotas: look again.
    }
  }

  /** Notes the classes that this host offers. Tells whether there is any. */
  #serveMore(others: readonly PlacementClass[]): boolean {
    const offered = others.filter((name) => this.#options.offers(name));
    for (const name of offered) this.#served.add(name);
    return offered.length > 0;
  }

  /** Returns the first `most` of the listed jobs that this host can serve. Decides about as many at once. */
  async #servable(listed: readonly WaitingJob[], at: number, most: number): Promise<Candidate[]> {
    const servable: Candidate[] = [];
    for (let from = 0; from < listed.length && servable.length < most; from += most) {
      const some = listed.slice(from, from + most).map((waiting) => this.#toCandidate(waiting, at));
      servable.push(...(await Promise.all(some)).filter((candidate) => candidate !== undefined));
    }
    return servable.slice(0, most);
  }

  async #toCandidate(waiting: WaitingJob, at: number): Promise<Candidate | undefined> {
    const job = parseSessionJob({ id: waiting.id, data: tryJson(waiting.data) }, waiting.placementClass);
    if (job !== undefined && queueOf(job) === waiting.queue)
      return (await this.#takes(waiting, job, at)) ? { ...waiting, job } : undefined;
    // The id names no session of the queue's tenant, so no host can do anything with the job. What else its tenant has
    // written there may prevent that it is removed. Then the job stays, behind others of the tenant.
    await this.#queues.removeWaiting(waiting.queue, waiting.id).catch(() => {});
    return undefined;
  }

  async #takes(waiting: WaitingJob, job: SessionJob, at: number): Promise<boolean> {
    // A job without valid data is refused by the host that takes it.
    if (job.data === undefined) return true;
    const key = `${waiting.queue} ${waiting.id} ${job.data.generation}`;
    const verdict = await this.#verdict(key, job);
    if (verdict === false) return false;
    const image = verdict === true ? undefined : verdict.image;
    if (image === undefined && job.data.near === undefined) return true;
    // This host may have seen the session before others of its tenant were taken, so the earlier time counts.
    const since = Math.min(waiting.nextSince || at, this.#left.get(key) ?? at);
    const endMs = since + WISH_MS - at;
    if (endMs <= 0 || !(await this.#options.isWishedElsewhere?.(job, image))) return true;
    this.#remember(this.#left, key, since);
    this.#nextWishEndMs = Math.min(endMs, this.#nextWishEndMs ?? endMs);
    return false;
  }

  async #verdict(key: string, job: SessionJob): Promise<ServeVerdict> {
    const { serves } = this.#options;
    if (serves === undefined || parseClass(job.placementClass)?.particular !== true) return true;
    const known = this.#verdicts.get(key);
    if (known !== undefined) return known;
    const verdict = await serves(job);
    this.#remember(this.#verdicts, key, verdict);
    return verdict;
  }

  #remember<T>(map: Map<string, T>, key: string, value: T): void {
    if (map.size >= MOST_REMEMBERED) map.clear();
    map.set(key, value);
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
