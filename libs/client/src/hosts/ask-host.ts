import { callHost, takeAnswer } from '@shellfleet/mailbox';
import {
  fromWireError,
  type HostAnswer,
  type HostQuestion,
  hostAnswerSchemas,
  parseOrThrow,
  type SealedAnswer,
  type SessionKeys,
  ShellfleetError,
  sealedAnswerSchema,
} from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { FleetContext } from '../connection/fleet-context.ts';
import type { PendingAnswers } from '../results/pending-answers.ts';
import { isHostAlive } from './is-host-alive.ts';

export interface AskContext extends FleetContext {
  readonly sealer: Sealer;
  readonly inboxId: string;
  readonly answers: PendingAnswers;
  nextId(): string;
  openInbox(): Promise<void>;
}

const ANSWER_WITHIN_MS = 5_000;

interface AskOptions {
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

/** Asks a host about one of its sessions. Rejects with its error, or HOST_UNREACHABLE without a reply in time (5 s). */
export async function askHost<Q extends HostQuestion>(
  context: AskContext,
  host: string,
  keys: SessionKeys,
  question: Q,
  { timeoutMs = ANSWER_WITHIN_MS, signal }: AskOptions = {},
): Promise<HostAnswer<Q['type']>> {
  if (!(await isHostAlive(context, host))) throw unreachable(host, keys);
  const { tenant, session } = keys;
  const id = context.nextId();
  await context.openInbox();
  const { redis, namespace, inboxId: inbox } = context;
  const ask = () => callHost(redis, namespace, host, { type: 'ask', tenant, session, id, inbox, question });
  const late = AbortSignal.timeout(timeoutMs);
  const ends = signal === undefined ? late : AbortSignal.any([late, signal]);
  const answer = context.answers.expect(id, ends, () => void ask().catch(() => {}));
  try {
    const [told] = await Promise.all([answer, ask()]);
    const sealed = told === '' ? await takeAnswer(context.redis, keys, id) : told;
    if (sealed === undefined) throw unreachable(host, keys);
    return toValue(open(context, keys, id, sealed), question) as HostAnswer<Q['type']>;
  } catch (error) {
    if (late.aborted && error === late.reason) throw unreachable(host, keys, timeoutMs);
    throw error;
  }
}

function open(context: AskContext, keys: SessionKeys, id: string, sealed: string) {
  const plain = context.sealer.open(sealed, sealPlace('answer', keys, id));
  return parseOrThrow(sealedAnswerSchema, JSON.parse(plain), 'INTERNAL', 'The answer of a host');
}

function toValue(answer: SealedAnswer, question: HostQuestion): unknown {
  if (answer.type === 'answer') {
    return parseOrThrow(hostAnswerSchemas[question.type], answer.value, 'INTERNAL', 'The answer of a host');
  }
  throw fromWireError(answer.error);
}

function unreachable(host: string, { session }: SessionKeys, waitedMs?: number): ShellfleetError {
  const how = waitedMs === undefined ? 'is not up' : `did not answer within ${waitedMs} ms`;
  return new ShellfleetError('HOST_UNREACHABLE', `The host ${host} of session ${session} ${how}.`, {
    hostId: host,
    sessionId: session,
  });
}
