import {
  answerHeld,
  type Decided,
  forgetDecided,
  type HeldDecision,
  notify,
  readDecided,
  readStoredSession,
} from '@shellfleet/mailbox';
import { newSessionJob, parsePlacement, type SessionJobs } from '@shellfleet/placement';
import {
  type ApprovalAnsweredData,
  type ApprovalEnd,
  type ApprovalKeys,
  newResult,
  type SessionKeys,
  sessionKeys,
  TOOL_ASKER,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Audit } from '../audit/audit.ts';
import { endEvent } from '../audit/session-events.ts';
import type { Logger } from '../log/logger.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import { approvalExpired, describeDenial } from './answer-texts.ts';

/** The part of the sessions queue that gives a session a host. */
export type SessionJobsOfAnswers = Pick<SessionJobs, 'ensure'>;

interface AnswerDeps {
  redis: Redis;
  jobs: SessionJobsOfAnswers;
  audit: Pick<Audit, 'note'>;
  metrics?: Pick<WorkerMetrics, 'heldEnded'> | undefined;
  logger: Logger;
}

/**
 * Answers the held entries whose question was decided: releases approved ones, which are decided again, and ends the
 * others. `before` (ms by Redis' clock) limits this to older decisions, whose process may have died.
 */
export async function answerHeldEntries(keys: ApprovalKeys, deps: AnswerDeps, before?: number): Promise<void> {
  // Ends when no decided question is left, or when no entry of a page could be answered.
  for (;;) {
    const page = await readDecided(deps.redis, keys, before);
    if (page.length === 0) return;
    const answered = await Promise.all(
      page.map((one) =>
        answerEntry(one, keys, deps).then(
          () => [one.member],
          (err: unknown) => {
            deps.logger.warn({ err }, 'approvals.failed');
            return [];
          },
        ),
      ),
    );
    const members = answered.flat();
    if (members.length === 0) return;
    await forgetDecided(deps.redis, keys, members);
  }
}

async function answerEntry({ type, question, asker, end }: Decided, of: ApprovalKeys, deps: AnswerDeps): Promise<void> {
  const { redis, audit, metrics } = deps;
  // A tool call is not held; its caller looks for the answer.
  if (asker === undefined || asker.session === TOOL_ASKER) return;
  const { session, generation, entryId } = asker;
  const keys = sessionKeys(of.namespace, of.tenant, session);
  const answer = toHeldDecision(type, end);
  const answered = await answerHeld(redis, keys, entryId, answer, toEventData(question, type, end));
  if (answered.type === 'denied') {
    // If the entry ended as its first attempt did, the host that ran that attempt has noted the end.
    if (answer.type === 'deny' && !answered.asFirst) {
      const about = { session, generation, entry: entryId };
      audit.note(of.tenant, () => endEvent(about, answer.result, NOTHING_OF_THE_SESSION));
      metrics?.heldEnded(answer.result);
    }
    const ended = [{ inbox: answered.inbox, entryId, event: answered.event }, ...answered.behind];
    const { tenant } = keys;
    const notices = ended.map(({ inbox, ...notice }) =>
      // A full Redis refuses the notice. Its loss does no harm, because a notice is only a hint.
      notify(redis, keys.namespace, inbox, { tenant, session, ...notice, result: '' }).catch(() => {}),
    );
    await Promise.all(notices);
  }
  // Upkeep adds the job if this process dies here.
  if ('needsJob' in answered && answered.needsJob) await ensureJob(keys, deps);
}

/** Redaction for a Result without any text of its session. */
const NOTHING_OF_THE_SESSION = { text: (text: string) => text };

function toHeldDecision(type: Decided['type'], end: ApprovalEnd | undefined): HeldDecision {
  if (type === 'approve') return { type: 'release' };
  if (type === 'expire')
    return { type: 'deny', result: newResult({ outcome: 'error', error: approvalExpired().toJSON() }) };
  const stderr = `Denied: ${describeDenial(end ?? {})}\n`;
  const totals = { stdoutBytes: 0, stderrBytes: Buffer.byteLength(stderr), stdoutLines: 0, stderrLines: 1 };
  const result = newResult({ outcome: 'denial', reason: 'approver' }, { stderr, totals });
  return { type: 'deny', result, abort: end?.abort };
}

const DECISIONS = { approve: 'approved', deny: 'denied', expire: 'expired' } as const;

function toEventData(id: string, type: Decided['type'], end: ApprovalEnd | undefined): ApprovalAnsweredData {
  const decision = DECISIONS[type];
  if (type === 'expire' || end === undefined) return { id, decision };
  const { scope, answeredBy, reason } = end;
  return {
    ...{ id, decision },
    ...(scope === undefined ? {} : { scope }),
    ...(answeredBy === undefined ? {} : { answeredBy }),
    ...(reason === undefined ? {} : { reason }),
  };
}

/** Queues a session that has work again, but no host. */
async function ensureJob(keys: SessionKeys, { redis, jobs }: AnswerDeps): Promise<void> {
  const state = await readStoredSession(redis, keys);
  if (state === undefined || !state.hasWork) return;
  const placement = parsePlacement(state.placement);
  // The next submit adds a job made from the sealed spec.
  if (placement === undefined) return;
  await jobs.ensure(newSessionJob(keys, state.generation, placement));
}
