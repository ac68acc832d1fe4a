import { type FleetKeys, parseSessionsQueue, sessionsQueue } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { listTenants } from './bullmq/list-tenants.ts';
import { rankSessions } from './bullmq/rank.ts';
import { findDemand, type Place, parseDemand, placeAmongTenants } from './demand.ts';
import { type Abilities, isOffered, offeredClasses, type PlacementClass } from './placement.ts';
import { classOf, jobIdOf, type NewSessionJob, type TenantSession } from './session-job.ts';
import { SessionQueues } from './session-queues.ts';

/** Limits how many additions are in flight at once. */
export interface AddLimit {
  enter<T>(call: () => Promise<T>): Promise<T>;
}

/** How many sessions of a tenant and class hold a slot, and how many wait for one. */
export interface SessionsLine {
  tenant: string;
  placementClass: PlacementClass;
  held: number;
  waiting: number;
}

/** The producer's side of the queues of sessions: adds jobs, and reads the order of those that wait. */
export class QueuedSessions {
  readonly #redis: Redis;
  readonly #fleet: FleetKeys;
  readonly #queues: SessionQueues;
  readonly #limit: AddLimit;
  readonly #adding = new Map<string, { running: Promise<void>; next?: Promise<void> }>();

  constructor(redis: Redis, fleet: FleetKeys, limit: AddLimit) {
    this.#redis = redis;
    this.#fleet = fleet;
    this.#queues = new SessionQueues(redis, fleet);
    this.#limit = limit;
  }

  /**
   * Adds a job unless the session has one, and wakes the hosts. Calls for one session share an addition that has not
   * begun. They do not share one that has begun, because it may have found an old job that was then removed.
   */
  ensureJob(job: NewSessionJob): Promise<void> {
    const key = `${classOf(job)} ${jobIdOf(job)}`;
    const current = this.#adding.get(key);
    if (current === undefined) {
      const running = this.#limit.enter(() => this.#queues.add(job)).finally(() => this.#adding.delete(key));
      this.#adding.set(key, { running });
      return running;
    }
    current.next ??= current.running.catch(() => {}).then(() => this.ensureJob(job));
    return current.next;
  }

  async leave(name: PlacementClass, session: TenantSession): Promise<void> {
    await this.#queues.removeWaiting(sessionsQueue(name, session.tenant), jobIdOf(session));
  }

  /**
   * Finds the places of a tenant's sessions of one class in the order in which slots are given, among the sessions of
   * all tenants that the hosts offer to take. Undefined for a session that does not wait. Classes with labels in which
   * sessions began to wait within the last second are left out, but for that of the sessions.
   */
  async places(
    sessions: readonly TenantSession[],
    placementClass: PlacementClass,
    hosts: readonly Abilities[],
  ): Promise<(Place | undefined)[]> {
    const tenants = parseDemand(await this.#redis.get(this.#fleet.demand));
    const waitedIn = new Set(tenants.flatMap((tenant) => Object.keys(tenant.waiting)));
    const offered = [...waitedIn].filter((name) => hosts.some((host) => isOffered(name, host)));
    const all = new Set([placementClass, ...hosts.flatMap(offeredClasses), ...offered]);
    const { waiting, ahead } = await rankSessions(this.#redis, this.#fleet, sessions, placementClass, all);
    return sessions.map(({ tenant }, index) => {
      const before = ahead[index];
      return before === undefined ? undefined : placeAmongTenants({ tenant, ahead: before, waiting }, tenants, all);
    });
  }

  /** Counts the sessions of each tenant and class that has any. */
  async lines(): Promise<SessionsLine[]> {
    // Queues that producers have noted are in the list of names from here on, even if no host is up.
    await listTenants(this.#redis, this.#fleet);
    const lines = (await this.#queues.names()).map(async (name) => {
      const parsed = parseSessionsQueue(name);
      return parsed === undefined ? [] : [{ ...parsed, ...(await this.#queues.counts(name)) }];
    });
    return (await Promise.all(lines)).flat();
  }

  /**
   * Returns the number of slots that a tenant's sessions hold, on all hosts. Those of classes with labels are known
   * while the tenant waits, as of a second ago.
   */
  async countHeld(hosts: readonly Abilities[], tenant: string): Promise<number> {
    const classes = [...new Set(hosts.flatMap(offeredClasses))];
    const [demand, ...counts] = await Promise.all([
      this.#redis.get(this.#fleet.demand),
      ...classes.map((name) => this.#queues.counts(sessionsQueue(name, tenant))),
    ]);
    const counted = counts.reduce((sum, { held }) => sum + held, 0);
    return Math.max(counted, findDemand(parseDemand(demand), tenant)?.held ?? 0);
  }

  /** Resolves when no addition is in flight. */
  async settled(): Promise<void> {
    while (this.#adding.size > 0) await Promise.allSettled([...this.#adding.values()].map(({ running }) => running));
  }
}
