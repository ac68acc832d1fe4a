import { SpanKind } from '@opentelemetry/api';
import {
  digestOfQuestion,
  isAnswerWaiting,
  openQuestion,
  readApprovalEnd,
  readQuestion,
  wakeForAnswers,
  writeAnswer,
} from '@shellfleet/mailbox';
import {
  type ApprovalAnswer,
  type ApprovalEnd,
  type ApprovalKeys,
  ATTRIBUTES,
  approvalAnswerSchema,
  approvalKeys,
  type Caller,
  parseOrThrow,
  ShellfleetError,
  SPANS,
} from '@shellfleet/protocol';
import { readFleetConfiguration } from '@shellfleet/redis';
import { sealPlace } from '@shellfleet/sealing';
import { nameOfUser } from '../connection/name-of-this-user.ts';
import { inSpan } from '../spans.ts';
import type { ApprovalsContext } from './approvals-context.ts';

const CLIENT = { kind: SpanKind.CLIENT } as const;

type GivenAnswer = {
  type: 'approve' | 'deny';
  id: string;
  answeredBy?: string | undefined;
} & Record<string, unknown>;

/** Time in which a live host applies an answer. Without a live host, the answer waits until one is up. */
const APPLIED_WITHIN_MS = 2_000;

/**
 * Writes an answer, and waits until a host has applied it. Checks the answer first, and fills in `answeredBy` if it is
 * absent.
 */
export function answerApproval(context: ApprovalsContext, answer: GivenAnswer): Promise<void> {
  const attributes = () => ({ [ATTRIBUTES.approvalId]: answer.id, [ATTRIBUTES.approvalAnswer]: answer.type });
  return inSpan(SPANS.answer, CLIENT, attributes, () => giveAnswer(context, answer));
}

async function giveAnswer(context: ApprovalsContext, answer: GivenAnswer): Promise<void> {
  const checked = checkAnswer(context, answer);
  const keys = approvalKeys(context.namespace, context.tenant);
  const pending = await readQuestion(context.redis, keys, checked.id);
  if (pending === undefined) throw await questionIsOver(context, keys, checked.id);
  const question = openQuestion(context.sealer, keys, pending);
  const { caller } = context;
  if (caller !== undefined && question?.submittedBy?.id === caller.id && !(await mayAnswerItself(context)))
    throw submittedItself(checked.id, caller);
  if (checked.type === 'approve' && checked.scope === 'prefix' && question?.amendment === undefined)
    throw offersNoRule(checked.id);
  const isAbout = checked.type === 'approve' && context.sealer.signs && question !== undefined;
  const given = isAbout ? { ...checked, asked: digestOfQuestion(question) } : checked;
  using wake = await context.feeds.follow(keys.feed);
  const written = await writeAnswer(context.redis, keys, sealAnswer(context, keys, given));
  await wakeForAnswers(context.redis, keys);
  const deadline = AbortSignal.timeout(APPLIED_WITHIN_MS);
  while (!deadline.aborted && (await isAnswerWaiting(context.redis, keys, written)))
    await wake.next(deadline).catch((error: unknown) => {
      if (!deadline.aborted) throw error;
    });
  if (deadline.aborted) return;
  const [waits, end] = await Promise.all([
    readQuestion(context.redis, keys, checked.id),
    readApprovalEnd(context.redis, keys, checked.id),
  ]);
  if (waits !== undefined) throw notAccepted(checked.id, 'so the question still waits');
  // Another answer was applied first, or the question had already ended.
  if (end === undefined || !isEndOf(checked, end)) throw await questionIsOver(context, keys, checked.id);
}

function isEndOf(answer: ApprovalAnswer, { state, scope, answeredBy }: ApprovalEnd): boolean {
  if (answer.answeredBy !== answeredBy) return false;
  return answer.type === 'approve' ? state === 'approved' && scope === answer.scope : state === 'denied';
}

async function mayAnswerItself({ redis, fleet }: ApprovalsContext): Promise<boolean> {
  return (await readFleetConfiguration(redis, fleet))?.configuration.approvals?.self === true;
}

export function checkAnswer(
  context: Pick<ApprovalsContext, 'caller'>,
  answer: { answeredBy?: string | undefined } & Record<string, unknown>,
): ApprovalAnswer {
  const named = { ...answer, answeredBy: answer.answeredBy ?? nameOfUser(context) };
  return parseOrThrow(approvalAnswerSchema, named, 'COMMAND_INVALID', 'The answer');
}

export function sealAnswer({ sealer }: ApprovalsContext, keys: ApprovalKeys, answer: ApprovalAnswer): string {
  return sealer.seal(JSON.stringify(answer), sealPlace('approval-answer', keys, { question: '' }));
}

/** Returns the error of an answer that every host refused. `consequence` completes its first sentence. */
export function notAccepted(id: string, consequence: string): ShellfleetError {
  return new ShellfleetError(
    'UNAUTHORIZED',
    `No host accepted the answer to ${id}, ${consequence}. Where keys are configured, sign it with the key of an approver (SHELLFLEET_SIGNING_KEY).`,
    { id },
  );
}

async function questionIsOver(
  { redis, tenant }: ApprovalsContext,
  keys: ApprovalKeys,
  id: string,
): Promise<ShellfleetError> {
  const end = await readApprovalEnd(redis, keys, id);
  const why =
    end === undefined
      ? `in the tenant ${tenant}: it has ended, or was never asked there`
      : `for an answer any more: ${describeEnd(end)}`;
  return new ShellfleetError(
    'APPROVAL_NOT_FOUND',
    `The question ${id} does not wait ${why}. List those that wait with \`shellfleet approvals ls\`.`,
    { id },
  );
}

function describeEnd({ state, answeredBy }: ApprovalEnd): string {
  const by = answeredBy === undefined ? '' : ` by ${answeredBy}`;
  switch (state) {
    case 'approved':
    case 'denied':
      return `it was ${state}${by}`;
    case 'revoked':
      return `its approval was revoked${by}`;
    case 'expired':
      return 'it has expired';
    case 'withdrawn':
      return 'what asked it was cancelled, or its session was closed';
  }
}

function submittedItself(id: string, { name }: Caller): ShellfleetError {
  return new ShellfleetError(
    'UNAUTHORIZED',
    `${name} cannot answer what it submitted itself (the question ${id}). Another caller answers it; or set \`approvals: { self: true }\` with \`shellfleet config apply\`.`,
    { id },
  );
}

function offersNoRule(id: string): ShellfleetError {
  const message = "offers no rule that the scope 'prefix' could allow; approve it with 'command' or 'session'";
  return new ShellfleetError('COMMAND_INVALID', `The question ${id} ${message}.`, {
    issues: [{ path: 'scope', message }],
  });
}
