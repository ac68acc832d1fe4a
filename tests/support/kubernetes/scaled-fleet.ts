import { newSessionJob, readFleetDemand, type SessionJob, type SessionJobs } from '@shellfleet/placement';
import { hostKeys } from '@shellfleet/protocol';
import { DOCKER, fleet, queue, redis, startHost } from '../open-placement.ts';
import type { Random } from '../random.ts';

interface Held {
  job: SessionJob;
  endsAt: number;
}

interface ScaledWorker {
  id: string;
  /** Time from which it takes sessions, in seconds. */
  readyAt: number;
  jobs: SessionJobs;
  held: Held[];
}

export interface ScaledFleetOptions {
  slots: number;
  /** Time from the decision to a worker that takes sessions, in seconds. */
  startSeconds: number;
  /** Mean time for which a session holds its slot, in seconds. */
  sessionSeconds: number;
  random: Random;
}

/**
 * A fleet in simulated time: sessions wait in the real queues of a real Redis, and its workers are heartbeats, fetches
 * and removals without shells.
 */
export class ScaledFleet {
  readonly #options: ScaledFleetOptions;
  readonly #workers: ScaledWorker[] = [];
  readonly #addedAt = new Map<string, number>();
  /** Remaining time of sessions that a worker handed over, in seconds. */
  readonly #handedOver = new Map<string, number>();
  #added = 0;
  #started = 0;
  /** Time that each session waited for its first slot, in seconds. */
  readonly waits: number[] = [];
  ended = 0;
  moved = 0;

  constructor(options: ScaledFleetOptions) {
    this.#options = options;
  }

  get added(): number {
    return this.#added;
  }

  get held(): number {
    return this.#workers.reduce((sum, { held }) => sum + held.length, 0);
  }

  get replicas(): number {
    return this.#workers.length;
  }

  async arrive(at: number, count: number): Promise<void> {
    const names = Array.from({ length: count }, () => `s-${++this.#added}`);
    for (const name of names) this.#addedAt.set(name, at);
    await Promise.all(names.map((session) => queue.ensureJob(toJob(session))));
  }

  /** Starts workers, or ends some at random, as a ReplicaSet does. One that ends hands its sessions over. */
  async scaleTo(replicas: number, at: number): Promise<void> {
    while (this.#workers.length < replicas) {
      const id = `w-${++this.#started}`;
      this.#workers.push({ id, readyAt: at + this.#options.startSeconds, jobs: await startHost(id), held: [] });
    }
    while (this.#workers.length > replicas) {
      const [victim] = this.#workers.splice(this.#options.random.below(this.#workers.length), 1);
      if (victim === undefined) break;
      for (const { job, endsAt } of victim.held) {
        this.#handedOver.set(job.session, endsAt - at);
        await victim.jobs.putBack(job);
      }
      this.moved += victim.held.length;
      await redis.zrem(fleet.hosts, victim.id);
      await redis.del(hostKeys(fleet.namespace, victim.id).alive);
      await victim.jobs.close();
    }
  }

  /** Ends sessions whose time is over, and lets ready workers take what waits. */
  async work(at: number): Promise<void> {
    for (const worker of this.#workers) {
      for (const one of worker.held.filter(({ endsAt }) => endsAt <= at)) await worker.jobs.remove(one.job);
      const before = worker.held.length;
      worker.held = worker.held.filter(({ endsAt }) => endsAt > at);
      this.ended += before - worker.held.length;
    }
    const ready = this.#workers.filter(({ readyAt }) => readyAt <= at);
    for (const worker of ready) await this.#beat(worker);
    for (const worker of ready) await this.#fill(worker, at);
    for (const worker of ready) await this.#beat(worker);
  }

  /** Returns the demand that `/scale` shows. */
  async demand(): Promise<number | undefined> {
    // Hosts count once a second, and in simulated time a second takes less.
    await redis.del(fleet.demand);
    await this.#workers[0]?.jobs.publishDemand();
    return (await readFleetDemand(redis, fleet))?.fleet.demand;
  }

  async #fill(worker: ScaledWorker, at: number): Promise<void> {
    while (worker.held.length < this.#options.slots) {
      const jobs = await worker.jobs.fetch({ most: this.#options.slots - worker.held.length });
      if (jobs.length === 0) return;
      for (const job of jobs) worker.held.push({ job, endsAt: at + this.#timeOf(job.session, at) });
    }
  }

  #timeOf(session: string, at: number): number {
    const left = this.#handedOver.get(session);
    if (left !== undefined) return left;
    this.waits.push(at - (this.#addedAt.get(session) ?? at));
    return -Math.log(1 - this.#options.random.next()) * this.#options.sessionSeconds;
  }

  async #beat({ id, held }: ScaledWorker): Promise<void> {
    const { slots } = this.#options;
    const beat = {
      ...{ slots, free: slots - held.length, sessions: held.length, policies: ['docker'], draining: false },
      ...{ version: '0.0.0', boot: id, defaultImage: 'slim' },
    };
    await redis.zadd(fleet.hosts, Date.now(), id);
    await redis.set(hostKeys(fleet.namespace, id).alive, JSON.stringify(beat));
  }
}

const toJob = (session: string) =>
  newSessionJob({ tenant: 'default', session }, '1', {
    ...{ policy: 'docker', priority: 0, labels: {}, sealedWith: DOCKER.replace('docker~', '') },
  });
