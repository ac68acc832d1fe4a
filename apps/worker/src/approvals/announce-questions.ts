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
import type { Logger } from 'pino';
import { sendAnnouncement, type Webhook } from './send-announcement.ts';

// Sends each question to the webhook of the operator, beside everything else: no question waits for it, and none is
// answered by it.
//
// ANNOUNCE-1. An announcement is due from the step in which the question is asked, until the webhook has taken it or
//             nobody asks the question any more. So each is sent at least once, whichever process dies, if the webhook
//             can be reached in time.
// ANNOUNCE-2. A host claims a question for longer than the request may take. So one host sends it at a time.
// ANNOUNCE-3. A question is read at the moment in which it is sent: one that was answered is not announced any more.

const INTERVAL_MS = 1_000;
const REQUEST_MS = 10_000;
/** ANNOUNCE-2 */
const CLAIM_MS = REQUEST_MS + 5_000;
const MOST_IN_FLIGHT = 4;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
/** Attempts for one question: they take more than four hours. */
const MOST_ATTEMPTS = 60;
/** Time between two reports that the webhook fails. */
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
  /** Requests, and searches for what is due. */
  readonly #tasks = new Set<Promise<void>>();
  #inFlight = 0;
  /** Number of requests that failed since the last report. */
  #failures = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  /** Problem of the last request, until one succeeds. */
  #problem: string | undefined;

  constructor(deps: AnnouncerDeps) {
    this.#deps = deps;
    this.#rounds = repeat(() => this.#lookAtAll(), { everyMs: INTERVAL_MS, onError: (err) => this.#report(err) });
  }

  /** Warnings for the operator, as `hosts ls` shows them. */
  get warnings(): string[] {
    return this.#problem === undefined ? [] : [`The webhook for questions fails: ${this.#problem}.`];
  }

  /** Sends what is due of a tenant: a session of this host has asked something. */
  asked(tenant: string): void {
    this.#track(this.#announceDue(tenant));
  }

  /** Gives up the requests that are under way. Another host, or the next process, makes them again at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#rounds.close();
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }

  async #lookAtAll(): Promise<void> {
    const { redis, fleet } = this.#deps;
    const tenants = await redis.zrange(fleet.asking, '0', '-1');
    if (tenants.length === 0) return;
    // One host that has a webhook looks at a time.
    if ((await redis.set(fleet.announcingLock, '1', 'PX', Math.floor(INTERVAL_MS * 0.9), 'NX')) === null) return;
    for (const tenant of tenants) if (tenantIdSchema.safeParse(tenant).success) await this.#announceDue(tenant);
  }

  /**
   * Begins requests until nothing of the tenant is due or enough of them are under way. Each calls this again when it
   * has ended.
   */
  async #announceDue(tenant: string): Promise<void> {
    const { redis, fleet } = this.#deps;
    const keys = approvalKeys(fleet.namespace, tenant);
    while (!this.#closing.signal.aborted && this.#inFlight < MOST_IN_FLIGHT) {
      // The request counts from before its claim, so that a search that runs meanwhile does not begin too many.
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

  /**
   * Waits for a task in `close`. A task that fails loses nothing: what it has claimed is due again when the claim ends.
   */
  #track(task: Promise<void>): void {
    const tracked = task.catch((err) => this.#report(err)).finally(() => this.#tasks.delete(tracked));
    this.#tasks.add(tracked);
  }

  #report(err: unknown): void {
    if (!this.#closing.signal.aborted) this.#deps.logger.warn({ err }, 'approvals.failed');
  }
}

/** Returns the pause before the next attempt. Half of it is random, so that requests that failed together part. */
function pauseAfter(attempt: number): number {
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
  return Math.round(pauseMs * (0.5 + Math.random() / 2));
}
