import { randomUUID } from 'node:crypto';
import { emptyResult, LIMITS, type SessionKeys, toWireResult } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { asArray, asString } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';

const script = defineMailboxScript('producer/cancel');

export type Cancelled =
  /** It never ran; whoever waits at `inbox` is to be told of `event`. */
  | { type: 'ended'; event: string; inbox: string }
  /** It runs: this host has to stop it. */
  | { type: 'marked'; host: string }
  | { type: 'ended-before' }
  | { type: 'unknown' };

/** A script that cancels many entries is called again, so that nobody else waits long. */
export const CANCELLED_IN_ONE_CALL = 2_000;

/** What becomes of an entry that is cancelled before it ran. */
export const CANCELLED_UNSTARTED = JSON.stringify(toWireResult(emptyResult('cancellation', { reason: 'cancelled' })));

/** Ends a waiting entry at once; marks a running one, which can then end only as a cancellation. */
export async function cancel(redis: Redis, keys: SessionKeys, entryId: string, reason: string): Promise<Cancelled> {
  const args = [entryId, reason, CANCELLED_UNSTARTED, LIMITS.retentionMs, randomUUID()];
  const reply = asArray(await runOnSession(redis, script, keys, args), script.name);
  if (reply[0] === 1) return { type: 'ended', event: asString(reply[1]), inbox: asString(reply[2]) };
  if (reply[0] === 2) return { type: 'marked', host: asString(reply[1]) };
  return { type: reply[0] === 0 ? 'ended-before' : 'unknown' };
}
