import { type FleetKeys, type ToolCallEvent, toolCallKey, toolEventsKey, toolResultKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { sendAnswer } from './inbox.ts';
import { throwQueueError } from './script.ts';

// What Redis knows of a tool call besides its job, which only waits in line.
//
// TOOL-CALL-1. A call begins at most once: whoever sets its mark first has it, and whoever wants to prevent it sets the mark too.
// TOOL-CALL-2. A call has one result: the first that is written.
// TOOL-CALL-3. Each step may be sent twice. The mark names its writer, so a repetition is known from another's.

/** A result is read within seconds by whoever waits; of one who is gone it stays no longer than this. */
const RESULT_TTL_MS = 600_000;
/** A job that is added again because its reply was lost comes well before this; then the mark of its call has to be there. */
const MARK_TTL_MS = 600_000;
/** Results up to this size ride in the hint. */
const INLINE_CHARS = 4_096;
const EVENTS_LENGTH = 1_000;
const EVENTS_TTL_MS = 3_600_000;

export interface ToolCallRef {
  id: string;
  tenant: string;
  name: string;
  /** the producer that waits for the result, or empty */
  inbox: string;
}

export interface ToolEnd {
  /** the result */
  sealed: string;
  hostId: string | null;
  ok: boolean;
  code?: string | undefined;
}

/** TOOL-CALL-1. `by`: `<host> <boot> <nonce>`, or why it shall never begin. `longestMs`: how long it may go on. */
export async function beginToolCall(
  redis: Redis,
  fleet: FleetKeys,
  call: ToolCallRef,
  by: string,
  longestMs: number,
): Promise<boolean> {
  const key = toolCallKey(fleet, call.id);
  try {
    const set = await redis.set(key, by, 'PX', longestMs + MARK_TTL_MS, 'NX');
    return set !== null || (await redis.get(key)) === by;
  } catch (error) {
    return throwQueueError(error);
  }
}

/** TOOL-CALL-2. Answers whether this was the result that counts; then everybody is told. */
export async function endToolCall(redis: Redis, fleet: FleetKeys, call: ToolCallRef, end: ToolEnd): Promise<boolean> {
  const key = toolResultKey(fleet, call.id);
  try {
    const set = await redis.set(key, end.sealed, 'PX', RESULT_TTL_MS, 'NX');
    if (set === null && (await redis.get(key)) !== end.sealed) return false;
    const hint = { id: call.id, sealed: end.sealed.length <= INLINE_CHARS ? end.sealed : '' };
    if (call.inbox !== '') await sendAnswer(redis, fleet.namespace, call.inbox, hint);
    const { hostId, ok, code } = end;
    await sayToolEvent(redis, fleet, call.tenant, {
      type: 'call.ended',
      at: new Date().toISOString(),
      callId: call.id,
      name: call.name,
      hostId,
      ok,
      ...(code === undefined ? {} : { code }),
    });
    return true;
  } catch (error) {
    return throwQueueError(error);
  }
}

/** The sealed result, if there is one, and else who began it. */
export async function readToolCall(
  redis: Redis,
  fleet: FleetKeys,
  id: string,
): Promise<{ sealed: string | null; begun: string | null }> {
  try {
    const [sealed = null, begun = null] = await redis.mget(toolResultKey(fleet, id), toolCallKey(fleet, id));
    return { sealed, begun };
  } catch (error) {
    return throwQueueError(error);
  }
}

/** For whoever watches; the oldest go. */
export async function sayToolEvent(redis: Redis, fleet: FleetKeys, tenant: string, event: ToolCallEvent) {
  const key = toolEventsKey(fleet, tenant);
  await redis
    .multi()
    .xadd(key, 'MAXLEN', '~', EVENTS_LENGTH, '*', 'd', JSON.stringify(event))
    .pexpire(key, EVENTS_TTL_MS)
    .publish(key, '1')
    .exec();
}
