import { ALIVE_MS, type EntryKind, encodeWakeUp, LIMITS, quotasKey, type SessionKeys } from '@shellfleet/protocol';
import { asArray, asNumber, asString, isCluster, unexpected } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('producer/submit');

/** Greatest age of the last heartbeat of an owner in whose name an entry is started. */
const HEARD_WITHIN_MS = 1_000;

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
 * Accepts an entry once, and wakes an idle owner or, with its delegation, starts the entry (MAILBOX-6). `onSent` is
 * called directly after each sending.
 */
export async function submit(
  redis: Redis,
  keys: SessionKeys,
  submission: Submission,
  onSent?: () => void,
): Promise<Submitted> {
  const args = [
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
    keys.wakeUpsPrefix,
    encodeWakeUp({ type: 'session', tenant: keys.tenant, session: keys.session }),
    submission.input ?? '',
    LIMITS.inputLeaseMs,
    LIMITS.queuedBytesPerSession,
    isCluster(redis) ? '' : keys.hostsPrefix,
    ALIVE_MS - HEARD_WITHIN_MS,
    LIMITS.wakeUpPayloadBytes,
    isCluster(redis) ? '' : quotasKey(keys.namespace, keys.tenant),
  ];
  const reply = asArray(await runOnSession(redis, script, keys, args, onSent), script.name);
  switch (reply[0]) {
    case 1:
      return { type: 'accepted', waiting: asNumber(reply[1]), needsJob: reply[2] === 1 };
    case 2:
      return { type: 'accepted-before', waiting: asNumber(reply[1]), needsJob: reply[2] === 1 };
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
    case -5:
      return { type: 'too-large', waiting: asNumber(reply[1]), bytes: Number(asString(reply[2])) };
    case -6:
      return {
        ...{ type: 'over-quota', quota: reply[1] === 'maxQueued' ? 'maxQueued' : 'maxDiskBytes' },
        ...{ used: asNumber(reply[2]), limit: asNumber(reply[3]) },
      };
    default:
      throw unexpected(reply, script.name);
  }
}
