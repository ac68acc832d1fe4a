import { randomUUID } from 'node:crypto';
import { encodeWakeUp, type SessionKeys, toWireResult, type WireResult } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { asArray, asString } from '../reply.ts';
import { retentionOf } from '../retention.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';

const script = defineMailboxScript('producer/answer-held');

export type HeldAnswer = { type: 'clear' } | { type: 'deny'; result: WireResult };

export type AnsweredHeld =
  /** The head can be started now. `needsJob`: the session has work and no host, so the caller has to ensure its job. */
  | { type: 'cleared'; needsJob: boolean }
  /** It has ended, unstarted. The caller notifies `inbox` of `event`. */
  | { type: 'denied'; event: string; inbox: string; needsJob: boolean }
  /** It is not held: another answer, a cancellation or its start deadline came first. */
  | { type: 'not-held' }
  | { type: 'unknown' };

/**
 * Answers a held entry, from any process: clears it, or ends it as a denial. Wakes the session's host. `callId` makes the call
 * repeatable: a second arrival of the same call gets the same answer. `details`: data of the event `approval.answered`, in clear.
 */
export async function answerHeld(
  redis: Redis,
  keys: SessionKeys,
  entryId: string,
  answer: HeldAnswer,
  details: Record<string, unknown> = {},
  callId: string = randomUUID(),
): Promise<AnsweredHeld> {
  const { tenant, session } = keys;
  const args = [
    entryId,
    answer.type,
    answer.type === 'deny' ? JSON.stringify(toWireResult(answer.result)) : '',
    JSON.stringify({ decision: answer.type, ...details }),
    retentionOf(redis, keys.namespace),
    callId,
    keys.wakeUpsPrefix,
    encodeWakeUp({ type: 'session', tenant, session }),
  ];
  const reply = asArray(await runOnSession(redis, script, keys, args), script.name);
  if (reply[0] !== 1) return { type: reply[0] === 0 ? 'not-held' : 'unknown' };
  const [, event, inbox, needs] = reply;
  const needsJob = needs === 1;
  if (answer.type === 'clear') return { type: 'cleared', needsJob };
  return { type: 'denied', event: asString(event), inbox: asString(inbox), needsJob };
}
