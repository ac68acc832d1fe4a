import type { EntryKind, SessionKeys } from '@shellfleet/protocol';
import { sendLater } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
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

/** The groups of a connection that wait to be sent, by the key of their session's state. */
type Groups = Map<string, SubmitGroup>;
const unsent = new WeakMap<Redis, Groups>();

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
  if (onSent !== undefined) {
    const own = new SubmitGroup(redis, keys, submission);
    const submitted = own.add(submission);
    own.send(onSent); // sends waiting groups first
    return submitted;
  }
  const groups = groupsOf(redis);
  const group = groupFor(redis, keys, submission, groups);
  const submitted = group.add(submission);
  if (group.isFull) sendGroup(groups, keys, group);
  return submitted;
}

function groupsOf(redis: Redis): Groups {
  const groups = unsent.get(redis) ?? new Map<string, SubmitGroup>();
  unsent.set(redis, groups);
  return groups;
}

/** Returns the group of the session that waits to be sent if the entry can join it, or else a new one behind it. */
function groupFor(redis: Redis, keys: SessionKeys, submission: Submission, groups: Groups): SubmitGroup {
  const before = groups.get(keys.state);
  if (before?.takes(submission)) return before;
  if (before !== undefined) sendGroup(groups, keys, before);
  if (groups.size === 0) sendLater(redis, () => sendGroups(groups));
  const group = new SubmitGroup(redis, keys, submission);
  groups.set(keys.state, group);
  return group;
}

function sendGroup(groups: Groups, keys: SessionKeys, group: SubmitGroup): void {
  groups.delete(keys.state);
  group.send();
}

function sendGroups(groups: Groups): void {
  const all = [...groups.values()];
  groups.clear();
  for (const group of all) group.send();
}
