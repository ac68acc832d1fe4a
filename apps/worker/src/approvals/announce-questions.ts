import { type Repetition, repeat } from '@shellfleet/concurrency';
import {
  type ClaimedAnnouncement,
  claimAnnouncement,
  forgetAnnouncement,
  openPending,
  putOffAnnouncement,
  readQuestion,
} from '@shellfleet/mailbox';
import {
  type ApprovalKeys,
  approvalKeys,
  type FleetKeys,
  parseKeyspace,
  tenantIdSchema,
  toAnnouncement,
} from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import { sendAnnouncement, type Webhook } from './send-announcement.ts';

// Sends each question to the operator's webhook. No question waits for this.
// ANNOUNCE-1. An announcement is due from the step that asks the question until the webhook accepts it or nobody asks
//             any more. So it is sent at least once, whichever process dies, if the webhook is reachable in time.
// ANNOUNCE-2. A host claims a question for longer than a request can take, so that one host sends it at a time.
// ANNOUNCE-3. A question is read when it is sent, so an answered one is not announced.

const INTERVAL_MS = 1_000;
const REQUEST_MS = 10_000;
/** Duration of a claim (ANNOUNCE-2). */
const CLAIM_MS = REQUEST_MS + 5_000;
const MOST_IN_FLIGHT = 4;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
/** Attempts per question. They take over four hours. */
const MOST_ATTEMPTS = 60;
/** Interval between two log lines about a failing webhook. */
const REPORT_EVERY_MS = 60_000;

interface AnnouncerDeps {
  redis: Redis;
  fleet: FleetKeys;
  sealer: Sealer;
  logger: Logger;
  webhook: Webhook;
}

export class Announcer {
  readonly #deps: AnnouncerDeps;
  readonly #closing = new AbortController();
  readonly #rounds: Repetition;
  /** Running requests and searches. */
  readonly #tasks = new Set<Promise<void>>();
  #inFlight = 0;
  /** Failed requests since the last report. */
  #failures = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  /** Problem of the last request. Undefined after a success. */
  #problem: string | undefined;

  constructor(deps: AnnouncerDeps) {
    this.#deps = deps;
    this.#rounds = repeat(() => this.#lookAtAll(), { everyMs: INTERVAL_MS, onError: (err) => this.#report(err) });
  }

  /** Warnings for the operator, as `hosts ls` shows them. */
  get warnings(): string[] {
    return this.#problem === undefined ? [] : [`The webhook for questions fails: ${this.#problem}.`];
  }

  /** Announces the due questions of a tenant. Called after a session on this host has asked a question. */
  asked(tenant: string): void {
    this.#track(this.#announceDue(tenant));
  }

  /** Aborts running requests. Another host or the next process repeats them at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#rounds.close();
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }

  async #lookAtAll(): Promise<void> {
    const { redis, fleet } = this.#deps;
    const tenants = await redis.zrange(fleet.asking, '0', '-1');
    if (tenants.length === 0) return;
    // One host with a webhook searches at a time.
    if ((await redis.set(fleet.announcingLock, '1', 'PX', Math.floor(INTERVAL_MS * 0.9), 'NX')) === null) return;
    for (const tenant of tenants) if (tenantIdSchema.safeParse(tenant).success) await this.#announceDue(tenant);
  }

  /** Begins requests until no question of the tenant is due, or enough run. The end of each calls this again. */
  async #announceDue(tenant: string): Promise<void> {
    const { redis, fleet } = this.#deps;
    const keys = approvalKeys(fleet.namespace, tenant);
    while (!this.#closing.signal.aborted && this.#inFlight < MOST_IN_FLIGHT) {
      // Counted before the claim, so that a concurrent search does not begin too many requests.
      this.#inFlight += 1;
      const claimed = await claimAnnouncement(redis, keys, CLAIM_MS).catch((err: unknown) => {
        this.#inFlight -= 1;
        throw err;
      });
      if (claimed === undefined) {
        this.#inFlight -= 1;
        return;
      }
      const sent = this.#announce(keys, claimed).finally(() => {
        this.#inFlight -= 1;
      });
      this.#track(sent.then(() => this.#announceDue(tenant)));
    }
  }

  async #announce(keys: ApprovalKeys, { id, attempt }: ClaimedAnnouncement): Promise<void> {
    const { redis, sealer, logger, webhook } = this.#deps;
    if (this.#closing.signal.aborted) return putOffAnnouncement(redis, keys, id, 0);
    const pending = await readQuestion(redis, keys, id);
    if (pending === undefined) return forgetAnnouncement(redis, keys, id);
    const approval = openPending(sealer, keys, pending);
    const problem =
      approval === undefined
        ? 'this host has no key that opens the question'
        : await sendAnnouncement(
            webhook,
            JSON.stringify(toAnnouncement(parseKeyspace(keys.namespace).namespace, keys.tenant, approval)),
            Date.now(),
            AbortSignal.any([this.#closing.signal, AbortSignal.timeout(REQUEST_MS)]),
          );
    if (problem === undefined) {
      await forgetAnnouncement(redis, keys, id);
      this.#succeed();
      return;
    }
    if (this.#closing.signal.aborted) return putOffAnnouncement(redis, keys, id, 0);
    this.#fail(problem);
    if (attempt < MOST_ATTEMPTS) return putOffAnnouncement(redis, keys, id, pauseAfter(attempt));
    logger.error({ question: id, attempts: attempt, problem }, 'approvals.announce-given-up');
    await forgetAnnouncement(redis, keys, id);
  }

  #succeed(): void {
    if (this.#problem !== undefined) this.#deps.logger.info({}, 'approvals.announce-recovered');
    this.#problem = undefined;
    this.#failures = 0;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
  }

  #fail(problem: string): void {
    this.#problem = problem;
    this.#failures += 1;
    const now = performance.now();
    if (now - this.#reportedAt < REPORT_EVERY_MS) return;
    const { logger, webhook } = this.#deps;
    logger.error({ webhook: webhook.url.host, problem, failures: this.#failures }, 'approvals.announce-failed');
    this.#failures = 0;
    this.#reportedAt = now;
  }

  /** Makes `close` wait for a task. A failed task loses nothing, as its claim expires. */
  #track(task: Promise<void>): void {
    const tracked = task.catch((err) => this.#report(err)).finally(() => this.#tasks.delete(tracked));
    this.#tasks.add(tracked);
  }

  #report(err: unknown): void {
    if (!this.#closing.signal.aborted) this.#deps.logger.warn({ err }, 'approvals.failed');
  }
}

/** Returns the pause before the next attempt. Half of it is random, to spread requests that failed together. */
function pauseAfter(attempt: number): number {
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
  return Math.round(pauseMs * (0.5 + Math.random() / 2));
}
