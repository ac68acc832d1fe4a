import { randomUUID } from 'node:crypto';
import { encodeWakeUp, encodeWireResult, type SessionKeys, type WireResult } from '@shellfleet/protocol';
import { asArray, asString, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { CANCELLED_IN_ONE_CALL, cancelledUnstarted } from './cancel.ts';
import { type Closed, toEndedEntries } from './close.ts';

const CANCELLED_BY_ABORT = cancelledUnstarted('aborted by who denied the command before it');

const script = defineMailboxScript('producer/answer-held');

export type HeldDecision =
  /** The host decides about the entry again, and finds the answer. */
  | { type: 'release' }
  /** The entry ends unstarted. `abort` also cancels the entries behind it. */
  | { type: 'deny'; result: WireResult; abort?: boolean | undefined };

export type HeldReply =
  /** The host decides about the head next. With `needsJob` it has no host, and the caller ensures its job. */
  | { type: 'released'; needsJob: boolean }
  /** The caller notifies `inbox` and the inboxes of `behind`. `asFirst`: it ended like its first attempt. */
  | { type: 'denied'; event: string; inbox: string; asFirst: boolean; needsJob: boolean; behind: Closed['ended'] }
  /** Another answer, a cancellation or the start deadline came first. */
  | { type: 'not-held' }
  | { type: 'unknown' };

/**
 * Answers a held entry and wakes its host. A repetition with the same `callId` gets the same reply. `details` are the
 * plain data of the event `approval.answered`, if this call is to add the event.
 */
export async function answerHeld(
  redis: Redis,
  keys: SessionKeys,
  entryId: string,
  answer: HeldDecision,
  details?: object,
  callId: string = randomUUID(),
): Promise<HeldReply> {
  const { tenant, session } = keys;
  const args = [
    entryId,
    answer.type === 'deny' ? answer.result.outcome : answer.type,
    answer.type === 'deny' ? encodeWireResult(answer.result) : '',
    details === undefined ? '' : JSON.stringify(details),
    retentionOf(redis, keys.namespace),
    callId,
    keys.wakeUpsPrefix,
    encodeWakeUp({ type: 'session', tenant, session }),
    answer.type === 'deny' && answer.abort === true ? CANCELLED_BY_ABORT : '',
    CANCELLED_IN_ONE_CALL,
  ];
  const cancelled: Closed['ended'] = [];
  for (;;) {
    const reply = asArray(await runOnSession(redis, script, keys, args), script.name);
    if (reply[0] === 2) {
      cancelled.push(...toEndedEntries(asArray(reply[1], script.name)));
      continue; // ends when one call cancels all that still waits behind the entry
    }
    if (reply[0] !== 1) return { type: reply[0] === 0 ? 'not-held' : 'unknown' };
    const [, event, inbox, needs, behind, first] = reply;
    const needsJob = needs === 1;
    if (answer.type !== 'deny') return { type: 'released', needsJob };
    cancelled.push(...toEndedEntries(asArray(behind, script.name)));
    const ended = { event: asString(event), inbox: asString(inbox), asFirst: first === 1 };
    return { type: 'denied', ...ended, needsJob, behind: cancelled };
  }
}
