import { setTimeout as delay } from 'node:timers/promises';
import type { SessionJob, TenantSession } from '@shellfleet/placement';
import type { Redis } from 'ioredis';
import { isMovableClass } from '../lease/leases.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { HostedSession } from '../session/hosted-session.ts';
import type { Stop } from '../session/hosting.ts';
import type { FollowedTenants } from './followed-tenants.ts';

/** Pauses before a failed session is served again. After the last one its lease expires, and any host may take it. */
const RETRY_PAUSES_MS = [500, 1_000, 2_000];

interface HostedSessionsOptions {
  /** Reports that a session has left its slot. */
  onEnded(heldMs: number): void;
  /** Aborts when the worker stops and serves no more sessions. */
  stopping: AbortSignal;
  /** Tenants that have sessions here. */
  tenants: Pick<FollowedTenants, 'follow' | 'leave'>;
}

export class HostedSessions {
  readonly #sessions = new Map<string, { session: HostedSession; done: Promise<void> }>();
  readonly #host: SessionHost;
  readonly #options: HostedSessionsOptions;

  constructor(host: SessionHost, options: HostedSessionsOptions) {
    this.#host = host;
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Number of sandboxes that the sessions have, or are about to have beside those of pools. */
  get sandboxes(): number {
    return [...this.#sessions.values()].filter(({ session }) => session.usesSandbox).length;
  }

  /** Number of sessions with a shell and an entry that waits for an approval. */
  get asking(): number {
    return [...this.#sessions.values()].filter(({ session }) => session.asks).length;
  }

  /** Jobs of the sessions. */
  get jobs(): SessionJob[] {
    return [...this.#sessions.values()].map(({ session }) => session.job);
  }

  /** Returns the number of sessions of each tenant that has any here. */
  countByTenant(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { session } of this.#sessions.values())
      counts.set(session.job.tenant, (counts.get(session.job.tenant) ?? 0) + 1);
    return counts;
  }

  find(ref: TenantSession): HostedSession | undefined {
    return this.#sessions.get(memberOf(ref))?.session;
  }

  /** Restores the sessions in a Redis that came back with other data. */
  async declare(redis: Redis): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ session }) => session.declare(redis)));
  }

  /**
   * Serves a session until it leaves its slot. `found` is its living sandbox, if any. Resolves when the session begins
   * to find or open a shell, or needs none yet.
   */
  serve(job: SessionJob, found?: Sandbox, failures = 0): Promise<void> {
    const { stopping, onEnded, tenants } = this.#options;
    if (stopping.aborted) return this.#leave(job);
    const member = memberOf(job);
    // The job can be back before the previous generation has ended here.
    const previous = this.#sessions.get(member)?.done;
    if (previous !== undefined) {
      void previous.then(() => this.serve(job, found, failures));
      return Promise.resolve();
    }
    tenants.follow(job.tenant);
    const session = new HostedSession(job, this.#host);
    const from = performance.now();
    const served = session.serve(found);
    const done = served.then(() => {
      this.#sessions.delete(member);
      tenants.leave(job.tenant);
      onEnded(performance.now() - from);
    });
    this.#sessions.set(member, { session, done });
    void served.then(async (how) => {
      const pauseMs = RETRY_PAUSES_MS[failures];
      if (how === 'ended' || pauseMs === undefined) return;
      await delay(pauseMs, undefined, { ref: false });
      void this.serve(job, found, failures + 1);
    });
    return Promise.race([session.begun, served]).then(() => {});
  }

  /** Gives a session that was fetched while the worker stops to another worker, if that can reach its shell. */
  async #leave(job: SessionJob): Promise<void> {
    if (isMovableClass(job.placementClass)) await this.#host.jobs.putBack(job).catch(() => {});
  }

  /** Wakes all sessions after a change of the rules or of the fleet's configuration. */
  admissionChanged(): void {
    for (const { session } of this.#sessions.values()) session.wakeUp();
  }

  /** Ends the sandboxes of the sessions that did not stop. */
  async discard(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ session }) => session.discard()));
  }

  /** Lets sessions without a living shell leave this host, which takes nothing new from now on. */
  drain(): void {
    for (const { session } of this.#sessions.values()) session.drain();
  }

  /** Stops every session. Returns their number, and a promise that resolves when all have ended. */
  stop(how: Stop): { count: number; ended: Promise<unknown> } {
    const all = [...this.#sessions.values()];
    for (const { session } of all) session.stop(how);
    return { count: all.length, ended: Promise.all(all.map(({ done }) => done)) };
  }
}

export function memberOf({ tenant, session }: TenantSession): string {
  return `${tenant}:${session}`;
}
