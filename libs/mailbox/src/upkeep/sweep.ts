import { encodeWakeUp, encodeWireResult, LIMITS, newResult, type SessionKeys } from '@shellfleet/protocol';
import { asArray, asNumber, asString, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { CLOSED_UNSTARTED } from '../producer/cancel.ts';
import { type Closed, toEndedEntries } from '../producer/close.ts';
import type { Phase } from '../read/generation.ts';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('upkeep/sweep');

const MOST_ENTRIES_IN_ONE_CALL = 1_000;

/** Result of an entry whose start deadline passes while it waits. */
const NOT_STARTED_IN_TIME = encodeWireResult(newResult({ outcome: 'timeout', reason: 'not-started' }));

export interface Swept {
  trimmed: number;
  /** number of waiting entries */
  waiting: number;
  host: string;
  ended: Closed['ended'];
  /** True if an entry runs, can be started or be checked for admission, or the session is closing, whoever owns it. */
  hasWork: boolean;
  /** Empty when Redis has no state of the session. */
  phase: Phase | '';
}

export interface SweepLimits {
  retentionMs: number;
  streamBytes: number;
  /** True when the session's owner will not come back. */
  ownerGone?: boolean;
}

/** Ends overdue entries and unused generations, trims the stream, and frees the reserve of an idle stream. */
export async function sweep(
  redis: Redis,
  keys: SessionKeys,
  limits: SweepLimits = { retentionMs: retentionOf(redis, keys.namespace), streamBytes: LIMITS.sessionStreamBytes },
): Promise<Swept> {
  const args = [
    limits.retentionMs,
    limits.streamBytes,
    NOT_STARTED_IN_TIME,
    CLOSED_UNSTARTED,
    MOST_ENTRIES_IN_ONE_CALL,
    keys.wakeUpsPrefix,
    encodeWakeUp({ type: 'session', tenant: keys.tenant, session: keys.session }),
    limits.ownerGone === true ? '1' : '0',
  ];
  const reply = asArray(await runOnSession(redis, script, keys, args), script.name);
  const [trimmed, waiting, host, ended, hasWork, phase] = reply;
  return {
    trimmed: asNumber(trimmed),
    waiting: asNumber(waiting),
    host: asString(host),
    ended: toEndedEntries(asArray(ended, script.name)),
    hasWork: hasWork === 1,
    phase: asString(phase) as Swept['phase'],
  };
}
