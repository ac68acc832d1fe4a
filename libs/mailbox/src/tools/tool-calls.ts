import { type FleetKeys, type ToolCallEvent, toolCallKey, toolEventsKey, toolResultKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { sendAnswer } from '../producer/inbox.ts';

// The state of a tool call in Redis, besides its job, which only waits in the queue.
//
// TOOL-CALL-1. A call begins at most once: the process that sets its mark first has it. A process that prevents a call sets the mark, too.
// TOOL-CALL-2. A call has one result: the first that is written.
// TOOL-CALL-3. Each step may be sent twice. The mark names its writer, so a repetition can be told from a step of another process.

/** A waiting caller reads the result within seconds. If the caller is gone, the result expires after this time. */
const RESULT_TTL_MS = 600_000;
/** A job that is added again because its reply was lost arrives well before this. The mark of its call must still exist then. */
const MARK_TTL_MS = 600_000;
/** Results up to this size are part of the notice. */
const INLINE_CHARS = 4_096;
const EVENTS_LENGTH = 1_000;
const EVENTS_TTL_MS = 3_600_000;

export interface ToolCallRef {
  id: string;
  tenant: string;
  name: string;
  /** the producer that waits for the result, or empty */
  inbox: string;
  /** the caller's own name of it */
  callId?: string | undefined;
}

export interface ToolEnd {
  /** the result */
  sealed: string;
  hostId: string | null;
  ok: boolean;
  code?: string | undefined;
}

/** TOOL-CALL-1. `by`: `<host> <boot> <nonce>`, or the reason why it must never begin. `longestMs`: its longest duration. */
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

/** TOOL-CALL-2. Returns whether this was the first result. If so, notifies the inbox and publishes the event. */
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
      callId: call.callId ?? call.id,
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

/** The sealed result, and the mark that names the process that began the call. Each is null when it does not exist. */
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

/** Adds an event for observers; the oldest events are trimmed. */
export async function sayToolEvent(redis: Redis, fleet: FleetKeys, tenant: string, event: ToolCallEvent) {
  const key = toolEventsKey(fleet, tenant);
  await redis
    .multi()
    .xadd(key, 'MAXLEN', '~', EVENTS_LENGTH, '*', 'd', JSON.stringify(event))
    .pexpire(key, EVENTS_TTL_MS)
    .publish(key, '1')
    .exec();
}
