import { type FleetKeys, type ToolCallEvent, toolCallKey, toolEventsKey, toolResultKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { sendReply } from '../producer/inbox.ts';

// State of a tool call in Redis. The call's job only brings it to a host.
//
// TOOL-CALL-1. A call begins at most once, by the first process that sets its mark. A process that prevents a call also
//     sets its mark.
// TOOL-CALL-2. A call has one result: the first that is written.
// TOOL-CALL-3. Each step may be sent twice. The mark names its writer, which identifies repetitions.

/** Expiry of a result. A waiting caller reads it within seconds. */
const RESULT_TTL_MS = 600_000;
/** Expiry of a mark, long after the time in which a job whose reply was lost is added again. */
const MARK_TTL_MS = 600_000;
const INLINE_CHARS = 4_096;
const EVENTS_LENGTH = 1_000;
const EVENTS_TTL_MS = 3_600_000;

export interface ToolCallRef {
  id: string;
  tenant: string;
  name: string;
  /** producer that waits for the result, or empty */
  inbox: string;
  /** the caller's own name of the call */
  callId?: string | undefined;
}

export interface ToolEnd {
  sealed: string;
  hostId: string | null;
  ok: boolean;
  code?: string | undefined;
}

/** Begins a call (TOOL-CALL-1). `by`: `<host> <boot> <nonce>`, or why it must never begin. */
export async function beginToolCall(
  redis: Redis,
  fleet: FleetKeys,
  call: ToolCallRef,
  by: string,
  longestMs: number,
): Promise<boolean> {
  const key = toolCallKey(fleet, call.tenant, call.id);
  try {
    const set = await redis.set(key, by, 'PX', longestMs + MARK_TTL_MS, 'NX');
    return set !== null || (await redis.get(key)) === by;
  } catch (error) {
    return throwQueueError(error);
  }
}

/** Stores a result (TOOL-CALL-2). If it is the first, notifies the inbox, publishes the event and returns true. */
export async function endToolCall(redis: Redis, fleet: FleetKeys, call: ToolCallRef, end: ToolEnd): Promise<boolean> {
  const key = toolResultKey(fleet, call.tenant, call.id);
  try {
    const set = await redis.set(key, end.sealed, 'PX', RESULT_TTL_MS, 'NX');
    if (set === null && (await redis.get(key)) !== end.sealed) return false;
    const hint = { id: call.id, sealed: end.sealed.length <= INLINE_CHARS ? end.sealed : '' };
    if (call.inbox !== '') await sendReply(redis, fleet.namespace, call, hint);
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

/** Reads the sealed result, and the mark with the process that began the call. Each is null when it does not exist. */
export async function readToolCall(
  redis: Redis,
  fleet: FleetKeys,
  { id, tenant }: Pick<ToolCallRef, 'id' | 'tenant'>,
): Promise<{ sealed: string | null; begun: string | null }> {
  try {
    const [sealed = null, begun = null] = await redis.mget(
      toolResultKey(fleet, tenant, id),
      toolCallKey(fleet, tenant, id),
    );
    return { sealed, begun };
  } catch (error) {
    return throwQueueError(error);
  }
}

/** Adds an event for observers, and trims the oldest events. */
export async function sayToolEvent(redis: Redis, fleet: FleetKeys, tenant: string, event: ToolCallEvent) {
  const key = toolEventsKey(fleet, tenant);
  await redis
    .multi()
    .xadd(key, 'MAXLEN', '~', EVENTS_LENGTH, '*', 'd', JSON.stringify(event))
    .pexpire(key, EVENTS_TTL_MS)
    .publish(key, '1')
    .exec();
}
