import { context as active, type Span, SpanKind, trace } from '@opentelemetry/api';
import { hashIdempotencyKey, type Submission, type Submitted, submit } from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  type Caller,
  type EntryPayload,
  ensureShellfleetError,
  LIMITS,
  parseKeyspace,
  ShellfleetError,
  SPANS,
  type TraceContext,
  toCanonicalJson,
  toCommandId,
} from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import { type DurabilityOfRedis, requireDurability, waitUntilOnDisk } from '../connection/durability.ts';
import type { SubmitBudget } from '../queue/send-window.ts';
import type { Pending, Sent } from '../results/pending-results.ts';
import { carry, endFailed, startSpan } from '../spans.ts';
import type { Interceptors } from './interceptors.ts';
import { noteInIndex } from './note-in-index.ts';
import type { OpenSession } from './open-session.ts';
import { overQuota } from './over-quota.ts';
import { type ResubmitContext, resubmit } from './resubmit.ts';

// SUBMIT-1. Entries of a session are accepted in the order of the calls, awaited or not. Without interceptors
//     everything up to the sending happens in the step of the call; with them, an entry waits for earlier calls.
// SUBMIT-2. The session enters the index, then its entry the mailbox, and then its job is added: upkeep finds the
//     entry of a producer that dies in between.

export interface SubmitContext extends ResubmitContext {
  readonly namespace: string;
  readonly tenant: string;
  readonly sealer: Sealer;
  readonly caller: Caller | undefined;
  readonly inboxId: string;
  readonly durability: Pick<DurabilityOfRedis, 'mode' | 'readAt' | 'confirm'>;
  readonly budget: SubmitBudget;
  readonly interceptors: Interceptors;
  nextId(): string;
  openInbox(): Promise<void>;
}

/** The options of a submit, besides the payload. */
export interface SendOptions {
  idempotencyKey?: string;
  durable?: boolean;
  retry?: 'never' | 'idempotent';
  startDeadlineMs?: number;
}

const PRODUCER = { kind: SpanKind.PRODUCER } as const;

/** Puts an entry into the session's mailbox. Rejects when Redis did not accept it. */
export async function sendEntry(
  context: SubmitContext,
  session: OpenSession,
  payload: EntryPayload,
  options: SendOptions = {},
): Promise<Sent> {
  if (options.durable) requireDurability(context.durability.mode);
  const { interceptors, tenant } = context;
  const { namespace } = parseKeyspace(context.namespace);
  const release = context.budget.take(payload);
  const entryId = context.nextId();
  const commandId = toCommandId(session.id, entryId);
  const span = startSpan(SPANS.send, PRODUCER);
  const carried = carry(span);
  const send = (given: EntryPayload) => sendNow(context, session, entryId, given, options, carried);
  const begin = () => {
    if (interceptors.isEmpty) return send(payload);
    const { durable = false, retry = 'never', ...rest } = options;
    return interceptors.around(
      { namespace, tenant, sessionId: session.id, commandId, payload, durable, retry, ...rest },
      send,
    );
  };
  const sent = span === undefined ? begin() : traceSend(span, session.id, commandId, payload, begin);
  return sent.then(
    (done) => {
      // The entry keeps its room until the Result has arrived, unless the command is deduplicated.
      if (done.deduplicated || done.pending.settled !== undefined) release();
      else done.pending.release = release;
      return done;
    },
    (error: unknown) => {
      release();
      throw error;
    },
  );
}

/** Traces a submit, from the call to the reply of Redis. */
async function traceSend(
  span: Span,
  sessionId: string,
  commandId: string,
  { type }: EntryPayload,
  submit: () => Promise<Sent>,
): Promise<Sent> {
  span.setAttributes({
    [ATTRIBUTES.messagingSystem]: 'shellfleet',
    [ATTRIBUTES.messagingOperationName]: 'send',
    [ATTRIBUTES.messagingOperationType]: 'send',
    [ATTRIBUTES.messagingDestination]: 'mailbox',
    [ATTRIBUTES.conversationId]: sessionId,
    [ATTRIBUTES.sessionId]: sessionId,
    [ATTRIBUTES.commandId]: commandId,
    [ATTRIBUTES.entryKind]: type,
  });
  try {
    const sent = await active.with(trace.setSpan(active.active(), span), submit);
    sent.pending.span ??= span;
    span.end();
    return sent;
  } catch (error) {
    endFailed(span, error);
    throw error;
  }
}

async function sendNow(
  context: SubmitContext,
  session: OpenSession,
  entryId: string,
  payload: EntryPayload,
  options: SendOptions,
  trace: TraceContext | undefined,
): Promise<Sent> {
  const { keys } = session;
  const pending = context.pending.expect(keys, entryId);
  // If an entry is submitted before the inbox is open, its record is read when the inbox opens.
  void context.openInbox();
  const { readAt, mode } = context.durability;
  const waits = options.durable === true && mode === 'wait';
  let onDisk: Promise<void> | undefined;
  const waitForDisk = () => {
    onDisk = waitUntilOnDisk(context.redis, pending.commandId);
    onDisk.catch(() => {});
  };
  const sending = context.window.enter(() => {
    noteInIndex(context, session);
    // Sealing takes the most time, so an entry is sealed only when the window has room. Then a burst delays its first
    // entries less.
    const seal = () => toSubmission(context, session, entryId, payload, options, trace);
    pending.resubmit = () => resubmit(context, session, pending, seal);
    return submit(context.redis, keys, seal(), waits ? waitForDisk : undefined);
  });
  try {
    const submitted = await sending;
    if (waits && (submitted.type === 'accepted-before' || submitted.type === 'deduplicated')) {
      // WAITAOF waits only for writes of this connection, and this call wrote nothing. The note in the index is a write
      // that follows the earlier submit.
      session.indexedAt = 0;
      noteInIndex(context, session);
      waitForDisk();
    }
    const sent = await accept(context, session, pending, submitted);
    await onDisk;
    if (options.durable) await context.durability.confirm(pending.commandId, readAt);
    return sent;
  } catch (error) {
    if (!pending.accepted) context.pending.forget(pending);
    throw ensureShellfleetError(error);
  }
}

/** Returns an entry as the mailbox stores it, with a sealed payload and a hashed idempotency key. */
function toSubmission(
  { sealer, inboxId, caller }: Pick<SubmitContext, 'sealer' | 'inboxId' | 'caller'>,
  session: OpenSession,
  entryId: string,
  payload: EntryPayload,
  { idempotencyKey, retry = 'never', startDeadlineMs }: SendOptions,
  trace: TraceContext | undefined,
): Submission {
  const { generation } = session;
  const place = sealPlace('payload', session.keys, {
    ...{ id: entryId, generation, retry, inbox: inboxId },
    ...(sealer.signs ? { spec: session.spec } : {}),
  });
  return {
    entryId,
    generation,
    kind: payload.type,
    // The fields beside the payload are left out of comparisons of payloads.
    payload: sealer.seal(JSON.stringify({ ...payload, trace, submittedBy: caller }), place),
    // Payloads are compared only under an idempotency key.
    payloadHash: idempotencyKey === undefined ? '' : digestPayload(sealer, payload),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey: hashIdempotencyKey(idempotencyKey) }),
    inbox: inboxId,
    retry,
    ...(payload.type === 'command' && payload.input !== undefined ? { input: payload.input } : {}),
    ...(startDeadlineMs === undefined ? {} : { startDeadlineMs }),
  };
}

/** Returns the digest by which payloads under one idempotency key are compared. It does not include `reader`. */
export function digestPayload(sealer: Sealer, payload: EntryPayload): string {
  return sealer.digest(toCanonicalJson({ ...payload, reader: undefined }));
}

async function accept(
  context: SubmitContext,
  session: OpenSession,
  pending: Pending,
  submitted: Submitted,
): Promise<Sent> {
  const { id, keys } = session;
  switch (submitted.type) {
    case 'accepted':
    case 'accepted-before': {
      pending.accepted = true;
      // If adding the job fails, upkeep finds a mailbox with waiting entries and no job, and adds one.
      if (submitted.needsJob) await context.ensureJob(session).catch(() => {});
      return { pending, deduplicated: false };
    }
    case 'deduplicated': {
      context.pending.forget(pending);
      const first = context.pending.expect(keys, submitted.entryId);
      first.accepted = true;
      return { pending: first, deduplicated: true };
    }
    case 'key-conflict':
      throw keyConflict(id, submitted.entryId);
    case 'closed':
      throw sessionClosed(id);
    case 'unknown-session':
      throw new ShellfleetError(
        'SESSION_NOT_FOUND',
        `Redis knows nothing of session ${id}. Open it again with fleet.session('${id}').`,
        { sessionId: id },
      );
    case 'too-many':
      throw new ShellfleetError(
        'QUOTA_EXCEEDED',
        `${submitted.waiting} commands wait in session ${id}, and ${LIMITS.queuedPerSession} is the limit. Wait for some of them to finish, or use another session.`,
        { sessionId: id, waiting: submitted.waiting, limit: LIMITS.queuedPerSession },
      );
    case 'too-large':
      throw new ShellfleetError(
        'QUOTA_EXCEEDED',
        `${submitted.waiting} commands with ${submitted.bytes} bytes wait in session ${id}, and ${LIMITS.queuedBytesPerSession} bytes is the limit. Wait for some of them to finish, or use another session.`,
        { sessionId: id, waiting: submitted.waiting, bytes: submitted.bytes, limit: LIMITS.queuedBytesPerSession },
      );
    case 'over-quota':
      throw overQuota(context.tenant, submitted);
  }
}

function sessionClosed(id: string): ShellfleetError {
  return new ShellfleetError(
    'SESSION_CLOSED',
    `Session ${id} was closed. fleet.session('${id}') opens this id again.`,
    { sessionId: id },
  );
}

export function keyConflict(sessionId: string, entryId: string): ShellfleetError {
  const commandId = toCommandId(sessionId, entryId);
  return new ShellfleetError(
    'IDEMPOTENCY_CONFLICT',
    `The idempotency key was used in session ${sessionId} for another payload (command ${commandId}). Use a new key.`,
    { sessionId, commandId },
  );
}
