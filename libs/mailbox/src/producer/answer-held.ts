import { randomUUID } from 'node:crypto';
import { encodeWakeUp, type SessionKeys, toWireResult, type WireResult } from '@shellfleet/protocol';
import { asArray, asString, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { CANCELLED_IN_ONE_CALL, cancelledUnstarted } from './cancel.ts';
import { type Closed, toEndedEntries } from './close.ts';

const CANCELLED_BY_ABORT = cancelledUnstarted('aborted by who denied the command before it');

const script = defineMailboxScript('producer/answer-held');

/** What becomes of a held entry. */
export type HeldDecision =
  /** The entry is decided again, and its host finds the answer. */
  | { type: 'release' }
  /** The entry ends unstarted. With `abort`, what waits behind it is cancelled. */
  | { type: 'deny'; result: WireResult; abort?: boolean | undefined };

export type HeldReply =
  /** The head is decided next. `needsJob`: the session has work and no host, so the caller has to ensure its job. */
  | { type: 'released'; needsJob: boolean }
  /**
   * The entry has ended unstarted. The caller notifies `inbox` of `event`, and the inboxes of the entries that were
   * cancelled `behind` it. `asFirst` tells that it had a first attempt, and ended as that did.
   */
  | { type: 'denied'; event: string; inbox: string; asFirst: boolean; needsJob: boolean; behind: Closed['ended'] }
  /** The entry is not held: another answer, a cancellation or its start deadline came first. */
  | { type: 'not-held' }
  | { type: 'unknown' };

/**
 * Answers a held entry, from any process: releases it, or ends it unstarted. Wakes the session's host. `callId` makes
 * the call repeatable: a second arrival of the same call gets the same answer. `details`: data of the event
 * `approval.answered`, in clear; without it there is no event.
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
    answer.type === 'deny' ? JSON.stringify(toWireResult(answer.result)) : '',
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
      continue; // ends when so little waits behind the entry that one call cancels it
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
