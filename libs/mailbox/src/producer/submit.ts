import { type EntryKind, encodeWakeUp, LIMITS, type SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { asArray, asNumber, asString, unexpected } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';

const script = defineMailboxScript('producer/submit');

export interface Submission {
  entryId: string;
  generation: string;
  kind: EntryKind;
  /** sealed */
  payload: string;
  /** of the payload in clear; tells whether an idempotency key stands for the same thing */
  payloadHash: string;
  /** hashed */
  idempotencyKey?: string;
  inbox: string;
  retry: 'never' | 'idempotent';
  startDeadlineMs?: number;
  /** What it reads comes while it runs; `streamed`: from its submitter, which must not go away before the end. */
  input?: 'open' | 'streamed';
}

export type Submitted =
  /** `waiting` entries are before it; without a host the session needs a job. */
  | { type: 'accepted'; waiting: number; host: string }
  /** The same call arrived before. What its caller does then (the session's job) may not have been done. */
  | { type: 'accepted-before'; waiting: number; host: string }
  | { type: 'deduplicated'; entryId: string }
  | { type: 'key-conflict'; entryId: string }
  | { type: 'closed' }
  | { type: 'unknown-session' }
  | { type: 'too-many'; waiting: number };

/** Puts an entry at the end of the mailbox, once, and wakes an idle owner. */
export async function submit(redis: Redis, keys: SessionKeys, submission: Submission): Promise<Submitted> {
  const reply = asArray(
    await runOnSession(redis, script, keys, [
      submission.entryId,
      submission.generation,
      submission.kind,
      submission.payload,
      submission.payloadHash,
      submission.idempotencyKey ?? '',
      submission.inbox,
      submission.retry,
      submission.startDeadlineMs ?? '',
      LIMITS.queuedPerSession,
      LIMITS.retentionMs,
      keys.wakeUpsPrefix,
      encodeWakeUp({ type: 'session', tenant: keys.tenant, session: keys.session }),
      submission.input ?? '',
      LIMITS.inputLeaseMs,
    ]),
    script.name,
  );
  switch (reply[0]) {
    case 1:
      return { type: 'accepted', waiting: asNumber(reply[1]), host: asString(reply[2]) };
    case 2:
      return { type: 'accepted-before', waiting: asNumber(reply[1]), host: asString(reply[2]) };
    case 3:
      return { type: 'deduplicated', entryId: asString(reply[1]) };
    case -1:
      return { type: 'closed' };
    case -2:
      return { type: 'unknown-session' };
    case -3:
      return { type: 'key-conflict', entryId: asString(reply[1]) };
    case -4:
      return { type: 'too-many', waiting: asNumber(reply[1]) };
    default:
      throw unexpected(reply, script.name);
  }
}
