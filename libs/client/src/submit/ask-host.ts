import { sealPlace } from '@shellfleet/mailbox';
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
import type { Producer } from '../producer.ts';
import { callHost, isHostAlive } from './call-host.ts';

const ANSWER_WITHIN_MS = 5_000;

interface AskOptions {
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

/** Asks a host about one of its sessions. Throws what the host refuses with, and HOST_UNREACHABLE when it does not answer in time. */
export async function askHost<Q extends HostQuestion>(
  producer: Producer,
  host: string,
  keys: SessionKeys,
  question: Q,
  { timeoutMs = ANSWER_WITHIN_MS, signal }: AskOptions = {},
): Promise<HostAnswer<Q['type']>> {
  if (!(await isHostAlive(producer, host))) throw unreachable(host, keys);
  const { tenant, session } = keys;
  const id = producer.nextId();
  producer.openInbox();
  const late = AbortSignal.timeout(timeoutMs);
  const answer = producer.answers.expect(id, signal === undefined ? late : AbortSignal.any([late, signal]));
  try {
    const asked = callHost(producer, host, { type: 'ask', tenant, session, id, inbox: producer.inboxId, question });
    const [sealed] = await Promise.all([answer, asked]);
    return toValue(open(producer, keys, id, sealed), question) as HostAnswer<Q['type']>;
  } catch (error) {
    if (late.aborted && error === late.reason) throw unreachable(host, keys, timeoutMs);
    throw error;
  }
}

function open(producer: Producer, keys: SessionKeys, id: string, sealed: string) {
  const plain = producer.sealer.open(sealed, sealPlace('answer', keys, id));
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
