import { encodeWakeUp, LIMITS, newResult, type SessionKeys, toWireResult } from '@shellfleet/protocol';
import { asArray, asNumber, asString, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { CLOSED_UNSTARTED } from '../producer/cancel.ts';
import { type Closed, toEndedEntries } from '../producer/close.ts';
import type { Phase } from '../read/generation.ts';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('upkeep/sweep');

/** Entries that one call examines at most. */
const MOST_ENTRIES_IN_ONE_CALL = 1_000;

/** The Result of an entry whose start deadline passes while it waits. */
const NOT_STARTED_IN_TIME = JSON.stringify(toWireResult(newResult({ outcome: 'timeout', reason: 'not-started' })));

export interface Swept {
  trimmed: number;
  /** entries that wait */
  waiting: number;
  host: string;
  ended: Closed['ended'];
  /**
   * An entry runs, or can be started or checked for admission, or the session is closing: without a job it needs one. True also with a
   * host.
   */
  hasWork: boolean;
  /** Empty when nothing is stored of the session. */
  phase: Phase | '';
}

export interface SweepLimits {
  retentionMs: number;
  streamBytes: number;
  /** Its owner, if it has one, will not come back. */
  ownerGone?: boolean;
}

/**
 * Ends waiting entries whose start deadline has passed, ends a generation that nobody used for the retention, and trims the stream. Trimming by age keeps entries that ended within the
 * retention. Trimming by bytes keeps unfinished entries. The stream of an idle session is reduced to the memory that its events need.
 */
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
