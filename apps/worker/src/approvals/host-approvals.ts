import { randomBytes } from 'node:crypto';
import { SharedRounds } from '@shellfleet/concurrency';
import {
  answerHeld,
  askApproval,
  confirmAnswer,
  findAnswer,
  isAsking,
  keepWanted,
  type StoredAnswer,
} from '@shellfleet/mailbox';
import {
  type ApprovalGrant,
  type ApprovalRequestedData,
  approvalKeys,
  type PrefixRule,
  type ShellfleetError,
  type StoredQuestion,
  sessionKeys,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { AdmissionInput, ApprovalQuestion } from '../admission/admission.ts';
import type { Answer, Answers } from '../admission/create-admission.ts';
import type { Audit } from '../audit/audit.ts';
import type { Logger } from '../log/logger.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import { answerHeldEntries, type SessionJobsOfAnswers } from './answer-held-entries.ts';
import { approvalExpired, describeDenial, tooManyPending } from './answer-texts.ts';
import { type AnswerCheck, applyAnswers } from './apply-answers.ts';
import { type BoundQuestion, bindQuestion } from './bind-question.ts';
import { toStoredQuestion } from './describe-question.ts';
import { OpenedGrants } from './opened-grants.ts';
import { StartsUnderWay } from './starts-under-way.ts';

// The questions of this host's sessions and their answers, which are stored in Redis only.
// HOST-APPROVALS-1. An entry starts on a grant at most START_WITHIN_MS (by Redis' clock) after this host found it.
// HOST-APPROVALS-2. Written answers are applied before a grant is looked up. So a revocation holds from when it is
//                   written, except for starts that are under way then.
// HOST-APPROVALS-3. A question is added to its tenant before its entry is held. A held entry that asks nothing is
//                   decided again.
// HOST-APPROVALS-4. A grant that this host cannot open, or whose approver it does not know, does not count: its
//                   question is asked again.
// HOST-APPROVALS-5. An approval of scope `session` answers a later command only if the directories of both are known
//                   and equal.

/** Limit of HOST-APPROVALS-1. It is less than the time for which a revocation waits for an unresponsive host. */
const START_WITHIN_MS = 1_500;

export interface HostApprovalsDeps {
  redis: Redis;
  namespace: string;
  hostId: string;
  sealer: Sealer;
  jobs: SessionJobsOfAnswers;
  audit: Pick<Audit, 'note' | 'recorded'>;
  metrics?: Pick<WorkerMetrics, 'heldEnded'> | undefined;
  logger: Logger;
  check: AnswerCheck;
  /** Maximum of pending askers of one tenant. */
  mostPending: number;
  /** Reports each question of a session of this host, including a question that other sessions already ask. */
  onAsked?(tenant: string): void;
  signal: AbortSignal;
}

export type AskedQuestion =
  | { type: 'pending'; data: ApprovalRequestedData }
  /** Somebody has answered in the meantime, so the entry is decided again. */
  | { type: 'answered' }
  | { type: 'refused'; reason: string }
  | { type: 'failed'; error: ShellfleetError };

export type TenantAsker = Pick<AdmissionInput, 'tenant' | 'session' | 'generation' | 'entryId'>;

export type FoundAnswer = Answer | { type: 'expired' };

/** The part of HostApprovals that a session needs. */
export type SessionApprovals = Pick<HostApprovals, 'ask' | 'keepWanted' | 'held' | 'starts'>;

export class HostApprovals implements Answers {
  readonly starts = new StartsUnderWay();
  readonly #deps: HostApprovalsDeps;
  readonly #grants: OpenedGrants;
  /** Rounds of each tenant, which apply its answers and then answer the entries that asked. */
  readonly #applying = new SharedRounds((tenant) => this.#apply(tenant));
  readonly #answering = new SharedRounds((tenant) => this.#answer(tenant));

  constructor(deps: HostApprovalsDeps) {
    this.#deps = deps;
    this.#grants = new OpenedGrants(deps.sealer);
  }

  async find(
    input: AdmissionInput,
    asked: ApprovalQuestion,
    allows: (rules: readonly PrefixRule[]) => boolean,
  ): Promise<Answer> {
    const bound = this.#bind(input, asked);
    if (bound === undefined) return { type: 'denied', reason: 'it cannot be written as a key for its answer' };
    const found = await this.findFor(input, bound, asked, allows);
    if (found.type === 'expired') throw approvalExpired();
    return found;
  }

  /** Looks for the answer to a bound question. */
  async findFor(
    asker: TenantAsker,
    bound: BoundQuestion,
    asked: ApprovalQuestion,
    allows: (rules: readonly PrefixRule[]) => boolean,
  ): Promise<FoundAnswer> {
    const { redis, namespace, signal } = this.#deps;
    const keys = approvalKeys(namespace, asker.tenant);
    const looked = { ...bound, prefixes: asked.amendment !== undefined, directories: asked.covers !== undefined };
    const find = async () => {
      const found = await retryWhileRedisIsDown(() => findAnswer(redis, keys, asker, looked), signal);
      return found.unapplied > 0
        ? undefined
        : toAnswer(found, bound, asked, (id, sealed) => this.#grants.open(id, sealed, keys), allows);
    };
    const look = () => this.starts.look(asker, find, (answer) => answer?.type === 'granted');
    let answer = await look();
    // Repeats until no unapplied answers were found before the grant (HOST-APPROVALS-2). Invalid answers are dropped.
    while (answer === undefined) {
      signal.throwIfAborted();
      await this.apply(asker.tenant);
      answer = await look();
    }
    return answer;
  }

  /** Adds a question about the head of a mailbox. The caller then holds the head, and calls `held`. */
  async ask(
    input: AdmissionInput,
    asked: ApprovalQuestion,
    redaction: Pick<SessionRedaction, 'value'>,
  ): Promise<AskedQuestion> {
    const bound = this.#bind(input, asked);
    if (bound === undefined) return { type: 'refused', reason: `${asked.reason}; it cannot be written as a key` };
    const described = toStoredQuestion(input, asked, redaction, bound.under);
    return this.askFor(input, bound, asked, described, input.spec.approvalTimeoutMs);
  }

  /** Adds a question that is bound and described already. */
  async askFor(
    asker: TenantAsker,
    bound: BoundQuestion,
    asked: ApprovalQuestion,
    described: StoredQuestion,
    timeoutMs: number,
  ): Promise<AskedQuestion> {
    const { redis, namespace, sealer, mostPending, signal } = this.#deps;
    const keys = approvalKeys(namespace, asker.tenant);
    const id = `${bound.hash}.${randomBytes(6).toString('hex')}`;
    const sealed = sealer.seal(
      JSON.stringify(described),
      sealPlace('approval-question', keys, { question: bound.hash }),
    );
    const { binding } = bound;
    const add = (unanswered: boolean) =>
      retryWhileRedisIsDown(
        () => askApproval(redis, keys, { id, asker, binding, timeoutMs, mostPending, sealed, unanswered }),
        signal,
      );
    let added = await add(false);
    // HOST-APPROVALS-4
    if (added.type === 'answered' && (await this.findFor(asker, bound, asked, () => false)).type === 'open')
      added = await add(true);
    switch (added.type) {
      case 'pending': {
        this.#deps.onAsked?.(asker.tenant);
        const expiresAt = new Date(added.expiresAt).toISOString();
        return { type: 'pending', data: { id: added.id, reason: described.reason, expiresAt } };
      }
      case 'answered':
        return added;
      case 'quiet':
        return {
          type: 'refused',
          reason: `${asked.reason}; questions of this session were denied several times in a row, so it is asked nothing until ${new Date(added.until).toISOString()}`,
        };
      case 'too-many':
        return { type: 'failed', error: tooManyPending(asker.tenant, added.pending) };
    }
  }

  /** Keeps the question of a file operation or a tool call for a few seconds while its caller waits. */
  async keepWanted(asker: TenantAsker): Promise<void> {
    const { redis, namespace, signal } = this.#deps;
    await retryWhileRedisIsDown(() => keepWanted(redis, approvalKeys(namespace, asker.tenant), asker), signal);
  }

  /** Releases an entry whose answer came between its question and its hold (HOST-APPROVALS-3). */
  async held({ tenant, session, generation, entryId }: AdmissionInput): Promise<void> {
    const { redis, namespace, signal } = this.#deps;
    const asker = { session, generation, entryId };
    const isPending = () => isAsking(redis, approvalKeys(namespace, tenant), asker);
    if (await retryWhileRedisIsDown(isPending, signal)) return;
    const release = () => answerHeld(redis, sessionKeys(namespace, tenant, session), entryId, { type: 'release' });
    await retryWhileRedisIsDown(release, signal);
  }

  /** Applies the answers of a tenant. `confirm` is the id of a revocation that waits for this host. Never rejects. */
  async wakeUp(tenant: string, confirm: string | undefined): Promise<void> {
    const { redis, namespace, hostId, logger } = this.#deps;
    const settled = this.starts.settled();
    const confirmed = async () => {
      if (confirm === undefined) return;
      await settled;
      await confirmAnswer(redis, approvalKeys(namespace, tenant), confirm, hostId);
    };
    try {
      await Promise.all([confirmed(), this.apply(tenant)]);
    } catch (err) {
      logger.warn({ err }, 'approvals.failed');
    }
  }

  /** Applies the answers of a tenant that are written by now, and begins to answer the entries that asked. */
  apply(tenant: string): Promise<void> {
    return this.#applying.run(tenant);
  }

  async #apply(tenant: string): Promise<void> {
    const { namespace, signal } = this.#deps;
    const keys = approvalKeys(namespace, tenant);
    const decided = await retryWhileRedisIsDown(() => applyAnswers(keys, this.#deps), signal);
    if (decided) void this.#answering.run(tenant);
  }

  async #answer(tenant: string): Promise<void> {
    const { namespace, logger } = this.#deps;
    await answerHeldEntries(approvalKeys(namespace, tenant), this.#deps).catch((err: unknown) =>
      logger.warn({ err }, 'approvals.failed'),
    );
  }

  /** Binds a question. Undefined when it cannot be written as a key. */
  #bind(input: AdmissionInput, asked: ApprovalQuestion) {
    try {
      return bindQuestion(input, asked, this.#deps.namespace, this.#deps.sealer);
    } catch (err) {
      this.#deps.logger.warn({ err }, 'approvals.unbound');
      return undefined;
    }
  }
}

function toAnswer(
  { at, grant, end, prefixes, directories }: StoredAnswer,
  { hash, under }: BoundQuestion,
  { covers, directory }: ApprovalQuestion,
  open: (id: string, sealed: string) => ApprovalGrant | undefined,
  allows: (rules: readonly PrefixRule[]) => boolean,
): FoundAnswer {
  const granted = { type: 'granted', startBy: at + START_WITHIN_MS } as const;
  // Redis' keys are not trusted. So the id of a grant must begin with the question's hash, and its scope is sealed.
  const opened = grant?.id.startsWith(`${hash}.`) ? open(grant.id, grant.sealed) : undefined;
  // HOST-APPROVALS-5
  const holdsAgain = opened?.scope === 'session' && !(directory && 'unknown' in directory);
  if (opened !== undefined && (holdsAgain || !grant?.ofSession)) return granted;
  if (end?.state === 'denied') return { type: 'denied', reason: describeDenial(end), by: 'approver' };
  if (end?.state === 'expired') return { type: 'expired' };
  const isCovered = directories.some(({ id, sealed }) => {
    const of = open(id, sealed);
    const given = of?.scope === 'session' ? of.question.covers : undefined;
    return given?.under === under && covers?.isCoveredBy(given.pattern) === true;
  });
  if (isCovered) return granted;
  const wide = prefixes.map(({ id, sealed }) => open(id, sealed)).filter((one) => one?.scope === 'prefix');
  const rules = wide.flatMap((one) => one?.question.amendment ?? []);
  return rules.length > 0 && allows(rules) ? granted : { type: 'open' };
}
