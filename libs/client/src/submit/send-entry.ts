import { createHash } from 'node:crypto';
import { SpanKind, trace } from '@opentelemetry/api';
import { newSessionJob, toPlacement } from '@shellfleet/admission';
import { type Submission, type Submitted, sealPlace, submit } from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  type EntryPayload,
  ensureShellfleetError,
  LIMITS,
  ShellfleetError,
  SPANS,
  toCanonicalJson,
  toCommandId,
} from '@shellfleet/protocol';
import { requireDurability, waitUntilOnDisk } from '../connection/durability.ts';
import type { Producer } from '../producer.ts';
import type { Pending } from '../results/pending-results.ts';
import { noteInIndex } from './note-in-index.ts';
import type { OpenSession } from './open-session.ts';
import { reopenAfterLoss } from './open-session.ts';

// S1. Everything up to the sending happens before the first await: entries are accepted in call order, awaited or not.
// S2. The session is in the index before its mailbox holds anything, and has a job after it does: whoever dies in between leaves a trace that upkeep follows.

export interface SendOptions {
  idempotencyKey?: string;
  durable?: boolean;
  retry?: 'never' | 'idempotent';
  startDeadlineMs?: number;
}

export interface Sent {
  pending: Pending;
  /** The idempotency key stood for an entry that was accepted before. */
  deduplicated: boolean;
}

/** Puts an entry into the session's mailbox. Throws before anything is written, or rejects because Redis did not take it. */
export async function sendEntry(
  producer: Producer,
  session: OpenSession,
  payload: EntryPayload,
  options: SendOptions = {},
): Promise<Sent> {
  if (options.durable) requireDurability(producer.durability);
  const { keys } = session;
  const entryId = producer.nextId();
  const submission = toSubmission(producer, session, entryId, payload, options);
  const span = startSpan(session, entryId);
  const pending = producer.pending.expect(keys, entryId);
  pending.resubmit = () => resubmit(producer, session, pending, submission);
  producer.openInbox();
  let onDisk: Promise<void> | undefined;
  const sending = producer.window.enter(() => {
    noteInIndex(producer, session);
    const submitted = submit(producer.redis, keys, submission);
    if (options.durable && producer.durability === 'wait') {
      onDisk = waitUntilOnDisk(producer.redis, pending.commandId);
      onDisk.catch(() => {});
    }
    return submitted;
  });
  try {
    const sent = await accept(producer, session, pending, await sending);
    await onDisk;
    return sent;
  } catch (error) {
    const known = ensureShellfleetError(error);
    if (!pending.accepted) producer.pending.forget(pending);
    span.setAttribute(ATTRIBUTES.errorType, known.code);
    throw known;
  } finally {
    span.end();
  }
}

function toSubmission(
  producer: Producer,
  session: OpenSession,
  entryId: string,
  payload: EntryPayload,
  options: SendOptions,
): Submission {
  const { sealer } = producer;
  const { idempotencyKey, startDeadlineMs } = options;
  return {
    entryId,
    generation: session.generation,
    kind: payload.type,
    payload: sealer.seal(JSON.stringify(payload), sealPlace('payload', session.keys, entryId)),
    // Only an idempotency key compares payloads.
    payloadHash: idempotencyKey === undefined ? '' : sealer.digest(toCanonicalJson(payload)),
    ...(idempotencyKey === undefined
      ? {}
      : { idempotencyKey: createHash('sha256').update(idempotencyKey).digest('base64url') }),
    inbox: producer.inboxId,
    retry: options.retry ?? 'never',
    ...(payload.type === 'command' && payload.input !== undefined ? { input: payload.input } : {}),
    ...(startDeadlineMs === undefined ? {} : { startDeadlineMs }),
  };
}

async function accept(producer: Producer, session: OpenSession, pending: Pending, submitted: Submitted): Promise<Sent> {
  const { id, keys } = session;
  switch (submitted.type) {
    case 'accepted':
    case 'accepted-before': {
      pending.accepted = true;
      // Failing here is no failure of the entry: upkeep finds a mailbox that waits with no job.
      if (submitted.host === '') await ensureJob(producer, session).catch(() => {});
      return { pending, deduplicated: false };
    }
    case 'deduplicated': {
      producer.pending.forget(pending);
      const first = producer.pending.expect(keys, submitted.entryId);
      first.accepted = true;
      return { pending: first, deduplicated: true };
    }
    case 'key-conflict': {
      const commandId = toCommandId(id, submitted.entryId);
      throw new ShellfleetError(
        'IDEMPOTENCY_CONFLICT',
        `The idempotency key was used in session ${id} for another payload (command ${commandId}). Use a new key.`,
        { sessionId: id, commandId },
      );
    }
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
  }
}

function ensureJob(producer: Producer, session: OpenSession): Promise<void> {
  return producer.sessions.ensureJob(newSessionJob(session.keys, session.generation, toPlacement(session.spec)));
}

/** Redis lost an accepted entry, perhaps with its whole session: it goes in again under the same id. A host that began it refuses the id. */
async function resubmit(
  producer: Producer,
  session: OpenSession,
  pending: Pending,
  submission: Submission,
): Promise<void> {
  // The index and the inbox are gone as well.
  session.indexedAt = 0;
  producer.keepInbox();
  noteInIndex(producer, session);
  let submitted = await submit(producer.redis, session.keys, { ...submission, generation: session.generation });
  if (submitted.type === 'unknown-session') {
    await reopenAfterLoss(producer, session);
    submitted = await submit(producer.redis, session.keys, { ...submission, generation: session.generation });
  }
  if (submitted.type === 'accepted' || submitted.type === 'accepted-before') return ensureJob(producer, session);
  pending.settle({
    type: 'error',
    error: new ShellfleetError(
      'SESSION_LOST',
      `Redis lost command ${pending.commandId} and its session has ended since, so whether it ran is not known. Submit it again if that is safe.`,
      { commandId: pending.commandId },
    ),
  });
  producer.pending.forget(pending);
}

function sessionClosed(id: string): ShellfleetError {
  return new ShellfleetError(
    'SESSION_CLOSED',
    `Session ${id} was closed. fleet.session('${id}') starts the next life of this id.`,
    { sessionId: id },
  );
}

function startSpan(session: OpenSession, entryId: string) {
  return trace.getTracer('@shellfleet/client').startSpan(SPANS.submit, {
    kind: SpanKind.PRODUCER,
    attributes: {
      [ATTRIBUTES.messagingSystem]: 'bullmq',
      [ATTRIBUTES.messagingOperationName]: 'send',
      [ATTRIBUTES.messagingOperationType]: 'send',
      [ATTRIBUTES.messagingDestination]: 'mailbox',
      [ATTRIBUTES.conversationId]: session.id,
      [ATTRIBUTES.sessionId]: session.id,
      [ATTRIBUTES.commandId]: toCommandId(session.id, entryId),
    },
  });
}
