import type { EntryKind, SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { sendLater, takeUnsent } from '../scripts.ts';
import { SubmitGroup } from './submit-group.ts';

export interface Submission {
  entryId: string;
  generation: string;
  kind: EntryKind;
  /** sealed */
  payload: string;
  /** Keyed digest of the plain payload, because an idempotency key may be used for one payload only. */
  payloadHash: string;
  /** hashed */
  idempotencyKey?: string;
  inbox: string;
  retry: 'never' | 'idempotent';
  startDeadlineMs?: number;
  /** Stdin that is open while it runs. `streamed`: only its submitter writes, and renews a lease. */
  input?: 'open' | 'streamed';
}

export type Submitted =
  /** `waiting` entries are before it. With `needsJob` the session has no host, and the caller ensures its job. */
  | { type: 'accepted'; waiting: number; needsJob: boolean }
  /** The same call arrived before, and its caller may have died before it ensured the job. */
  | { type: 'accepted-before'; waiting: number; needsJob: boolean }
  | { type: 'deduplicated'; entryId: string }
  | { type: 'key-conflict'; entryId: string }
  | { type: 'closed' }
  | { type: 'unknown-session' }
  | { type: 'too-many'; waiting: number }
  | { type: 'too-large'; waiting: number; bytes: number }
  /** The tenant uses as much as it may. */
  | { type: 'over-quota'; quota: 'maxQueued' | 'maxDiskBytes'; used: number; limit: number };

/**
 * Accepts an entry once, and wakes an idle owner or, with its delegation, starts the entry (MAILBOX-6). Entries of a
 * session that are submitted in one turn of the event loop share a call, and each gets its own answer. With `onSent` an
 * entry has a call of its own, which is sent at once; `onSent` is called directly after each sending.
 */
export function submit(
  redis: Redis,
  keys: SessionKeys,
  submission: Submission,
  onSent?: () => void,
): Promise<Submitted> {
  const group = groupFor(redis, keys, submission, onSent);
  const submitted = group.add(submission);
  if (group.isFull || onSent !== undefined) group.send();
  else sendLater(redis, keys, group);
  return submitted;
}

/** Returns the group of the session that waits to be sent, if the entry can join it, or a new one behind it. */
function groupFor(redis: Redis, keys: SessionKeys, submission: Submission, onSent?: () => void): SubmitGroup {
  const before = takeUnsent(redis, keys);
  if (before instanceof SubmitGroup && onSent === undefined && before.takes(submission)) return before;
  before?.send();
  return new SubmitGroup(redis, keys, submission, onSent);
}
