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
const MOST_REMEMBERED = 10_000;
/** How long a session is left to hosts that meet its wishes, from when it is the next one of its tenant. */
const WISH_MS = 2_000;

export interface FetcherOptions {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  /** Tells whether this host offers a class. */
  offers(name: PlacementClass): boolean;
  /** length of a new lock, until the grace period of the session is known */
  lockMs: number;
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

  /** Takes the next job of a tenant that is not passed over. */
  async fetch(passedOver: readonly string[] = []): Promise<SessionJob | undefined> {
    this.#nextWishEndMs = undefined;
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
    const { redis, fleet, hostId, lockMs } = this.#options;
    for (;;) {
      const [weights, quotas] = [this.#options.weights?.() ?? {}, this.#options.quotas?.() ?? {}];
      const served = [...this.#served];
      const { at, others, jobs: listed } = await lookAtQueues(redis, fleet, { ...look, served, weights, quotas });
      // Sessions of these classes may be next, so the host looks again.
      if (this.#serveMore(others)) continue;
      const servable = (await this.#servable(listed, at)).map((waiting) => {
        const { tenant } = waiting.job;
        return { ...waiting, quota: Object.hasOwn(quotas, tenant) ? quotas[tenant] : undefined };
      });
      if (servable.length === 0) return { taken: undefined, listed };
      const taken = servable[await lockFirstWaiting(redis, fleet, hostId, lockMs, servable)];
      if (taken !== undefined) return { taken: taken.job, listed };
      // Other hosts took all candidates, or their tenants reached their quotas: look again.
    }
  }

  /** Notes the classes that this host offers. Tells whether there is any. */
  #serveMore(others: readonly PlacementClass[]): boolean {
    const offered = others.filter((name) => this.#options.offers(name));
    for (const name of offered) this.#served.add(name);
    return offered.length > 0;
  }

  async #servable(listed: readonly WaitingJob[], at: number): Promise<Candidate[]> {
    const servable: Candidate[] = [];
    for (const waiting of listed) {
      const job = parseSessionJob({ id: waiting.id, data: tryJson(waiting.data) }, waiting.placementClass);
      // The id names no session of the queue's tenant, so no host can do anything with the job.
      if (job === undefined || queueOf(job) !== waiting.queue)
        // What else its tenant has written there may prevent this. Then the job stays, behind others of the tenant.
        await this.#queues.removeWaiting(waiting.queue, waiting.id).catch(() => {});
      else if (await this.#takes(waiting, job, at)) servable.push({ ...waiting, job });
      if (servable.length === MOST_TRIED) break;
    }
    return servable;
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
