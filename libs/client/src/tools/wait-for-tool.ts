import { setTimeout as delay } from 'node:timers/promises';
import {
  beginToolCall,
  endToolCall,
  keepWanted,
  readAsked,
  readToolCall,
  type ToolCallRef,
  withdrawAskers,
} from '@shellfleet/mailbox';
import {
  approvalKeys,
  hostBeatSchema,
  hostKeys,
  LIMITS,
  SPANS,
  TOOL_ASKER,
  type ToolErrorCode,
  type ToolResult,
  toolResultKey,
  tryJson,
  wireToolResultSchema,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import { SpanWhile } from '../spans.ts';
import type { ToolCallContext } from './tool-context.ts';
import { type ToolWait, whyCallWaits } from './why-it-waits.ts';

// TOOLCALL-1. A hint reports that there is a result. Without a hint, the result is read every 3 s.
// TOOLCALL-2. A call that began on a host which is gone, or that Redis has lost, is reported as lost and never runs
//     again. Two readings in a row must agree, each with a reply of Redis.

const LOOK_EVERY_MS = 3_000;
const AGREEING_LOOKS = 2;
const LOOK_FOR_ANSWER_EVERY_MS = 500;
const LOOK_FOR_REASON_EVERY_MS = 2_000;

interface Waiting {
  /** The sealed result, or an empty text if the result has to be read. Rejects when the connection is closed. */
  hint: Promise<string>;
  nextHint(): Promise<string>;
  /** Adds the job of the call again, after a host has removed it from the queue to ask a person. */
  addAgain(): Promise<unknown>;
  onApproval: (() => void) | undefined;
  onWaiting: ((wait: ToolWait) => void) | undefined;
  startDeadlineMs: number | undefined;
  signal: AbortSignal | undefined;
}

type State =
  | { type: 'ended'; sealed: string }
  | { type: 'waiting' }
  | { type: 'running' }
  /** A person is asked about the call, or has answered. */
  | { type: 'asks' | 'decided' }
  | { type: 'gone'; hostId: string | null; message: string };

/** Returns the one result of an accepted call. Rejects with the signal's reason, and when the connection is closed. */
export async function waitForTool(context: ToolCallContext, call: ToolCallRef, waiting: Waiting): Promise<ToolResult> {
  const { startDeadlineMs = Number.POSITIVE_INFINITY, signal, onWaiting } = waiting;
  const startBy = performance.now() + startDeadlineMs;
  let { hint } = waiting;
  const lookEveryMs = onWaiting === undefined ? LOOK_EVERY_MS : LOOK_FOR_REASON_EVERY_MS;
  let asks = false;
  using asking = new SpanWhile(SPANS.approval);
  let mayWait = true;
  for (let looksGone = 0; ; ) {
    const untilStartMs = Math.ceil(startBy - performance.now());
    const lookAgainMs = asks ? LOOK_FOR_ANSWER_EVERY_MS : lookEveryMs;
    const pauseMs = untilStartMs > 0 ? Math.min(lookAgainMs, untilStartMs + 1) : lookAgainMs;
    const hinted = await within(hint, pauseMs, signal);
    if (hinted) return open(context, call, hinted);
    if (hinted === '') hint = waiting.nextHint();
    const state = await look(context, call).catch(() => undefined);
    looksGone = state?.type === 'gone' ? looksGone + 1 : 0;
    if (state?.type === 'ended') return open(context, call, state.sealed);
    if (state?.type === 'asks' && !asks) waiting.onApproval?.();
    if (state !== undefined) asks = state.type === 'asks';
    asking.set(asks);
    if (state?.type === 'decided') await waiting.addAgain();
    // While Redis does not reply, the state of the last reply counts.
    if (state !== undefined) mayWait = state.type === 'waiting';
    if (onWaiting !== undefined && mayWait) await whyCallWaits(context, call.name).then(onWaiting, () => {});
    const mayStart = state?.type === 'waiting' || state?.type === 'asks';
    if (mayStart && performance.now() >= startBy && (await withdraw(context, call))) {
      return toolFailure(
        callNameOf(call),
        'not-started',
        `tool '${call.name}' did not start within ${startDeadlineMs} ms`,
      );
    }
    if (state?.type === 'gone' && looksGone >= AGREEING_LOOKS && (await endLost(context, call, state))) {
      return toolFailure(callNameOf(call), 'lost', state.message, state.hostId);
    }
  }
}

export const askerOf = ({ name, id }: ToolCallRef) => ({ session: TOOL_ASKER, generation: name, entryId: id });

/** Returns the name that the caller gave to the call, or else the id of the call. */
export const callNameOf = ({ callId, id }: ToolCallRef): string => callId ?? id;

export function toolFailure(
  callId: string,
  code: ToolErrorCode,
  text: string,
  hostId: string | null = null,
): ToolResult {
  const message = code === 'unknown-tool' ? text : `Shellfleet: ${text}`;
  return { callId, hostId, ok: false, error: { code, message } };
}

/** Returns the content of the hint, or undefined when no hint arrives within `ms`. */
async function within(hint: Promise<string>, ms: number, signal: AbortSignal | undefined): Promise<string | undefined> {
  const over = new AbortController();
  const pause = delay(ms, undefined, { signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal });
  try {
    return await Promise.race([hint, pause]);
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  } finally {
    pause.catch(() => {});
    over.abort();
  }
}

async function look(context: ToolCallContext, call: ToolCallRef): Promise<State> {
  // The job is read before the state of the call. It is removed only after the call has begun, so if both are missing,
  // Redis has lost the call.
  const waits = await context.tools.has(call);
  const { sealed, begun } = await readToolCall(context.redis, context.fleet, call);
  if (sealed !== null) return { type: 'ended', sealed };
  if (begun === null) {
    if (waits) return { type: 'waiting' };
    const asked = await readAsked(context.redis, approvalKeys(context.namespace, context.tenant), askerOf(call));
    if (asked === 'asks')
      await keepWanted(context.redis, approvalKeys(context.namespace, context.tenant), askerOf(call));
    if (asked !== undefined) return { type: asked };
    return { type: 'gone', hostId: null, message: 'Redis lost the call; whether it ran is not known' };
  }
  const [host = '', boot] = begun.split(' ');
  if ((await bootOf(context, host)) === boot) return { type: 'running' };
  const message = `host ${host} was lost while the tool ran; whether it took effect is not known`;
  return { type: 'gone', hostId: host, message };
}

async function bootOf(context: ToolCallContext, host: string): Promise<string | undefined> {
  const beat = await context.redis.get(hostKeys(context.namespace, host).alive);
  if (beat === null) return undefined;
  return hostBeatSchema.safeParse(tryJson(beat)).data?.boot;
}

/** Prevents the call from starting. Returns false when it has started, or Redis is down. */
async function withdraw(context: ToolCallContext, call: ToolCallRef): Promise<boolean> {
  try {
    const by = `withdrawn ${context.id}`;
    if (!(await beginToolCall(context.redis, context.fleet, call, by, LIMITS.timeoutMs))) return false;
    await context.tools.remove(call).catch(() => {});
    await withdrawAskers(context.redis, approvalKeys(context.namespace, context.tenant), [askerOf(call)]);
    return true;
  } catch {
    return false;
  }
}

/**
 * Stores the result `lost`. Returns false when the call already has another result, or Redis did not store this one.
 */
async function endLost(
  context: ToolCallContext,
  call: ToolCallRef,
  { hostId, message }: { hostId: string | null; message: string },
) {
  const error = { code: 'lost', message: `Shellfleet: ${message}` } as const;
  const sealed = context.sealer.seal(
    JSON.stringify({ ok: false, hostId, error }),
    sealPlace('tool-result', context, call),
  );
  const end = { sealed, hostId, ok: false, code: error.code };
  return endToolCall(context.redis, context.fleet, { ...call, inbox: '' }, end).catch(() => false);
}

function open(context: ToolCallContext, call: ToolCallRef, sealed: string): ToolResult {
  // The result is removed because no other process reads it.
  void context.redis.unlink(toolResultKey(context.fleet, call.tenant, call.id)).catch(() => {});
  try {
    const wire = wireToolResultSchema.parse(
      JSON.parse(context.sealer.open(sealed, sealPlace('tool-result', context, call))),
    );
    return { callId: callNameOf(call), ...wire };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return toolFailure(call.id, 'error', `the result of tool '${call.name}' cannot be read: ${reason}`);
  }
}
