import { emptyResult, LIMITS, type SessionKeys, toWireResult } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { type Closed, toEnded } from '../producer/close.ts';
import { asArray, asNumber, asString } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';

const script = defineMailboxScript('upkeep/sweep');

/** What becomes of an entry whose start deadline passes while it waits. */
const NOT_STARTED_IN_TIME = JSON.stringify(toWireResult(emptyResult('timeout', { reason: 'wall' })));

export interface Swept {
  trimmed: number;
  /** entries that wait; with no host the session needs a job */
  waiting: number;
  host: string;
  ended: Closed['ended'];
}

export interface SweepLimits {
  retentionMs: number;
  streamBytes: number;
}

/** Ends waiting entries whose start deadline has passed, and trims the stream by age and bytes. */
export async function sweep(
  redis: Redis,
  keys: SessionKeys,
  limits: SweepLimits = { retentionMs: LIMITS.retentionMs, streamBytes: LIMITS.sessionStreamBytes },
): Promise<Swept> {
  const reply = asArray(
    await runOnSession(redis, script, keys, [limits.retentionMs, limits.streamBytes, NOT_STARTED_IN_TIME]),
    script.name,
  );
  return {
    trimmed: asNumber(reply[0]),
    waiting: asNumber(reply[1]),
    host: asString(reply[2]),
    ended: toEnded(asArray(reply[3], script.name)),
  };
}
