import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { beginToolCall, callHost, readToolCall, type ToolCallRef, withdrawAskers } from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  approvalKeys,
  entryIdSchema,
  LIMITS,
  NotJsonError,
  parseOrThrow,
  SPANS,
  type ToolErrorCode,
  type ToolResult,
  tenantIdSchema,
  toJsonText,
  toolCallIdSchema,
  toolNameSchema,
} from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import { sealPlace, signToolCancel } from '@shellfleet/sealing';
import { z } from 'zod';
import { carryActive, inSpan } from '../spans.ts';
import type { ToolCallContext } from './tool-context.ts';
import { askerOf, callNameOf, toolFailure, waitForTool } from './wait-for-tool.ts';
import type { ToolWait } from './why-it-waits.ts';

/** How a tool is called. */
export interface ToolCallOptions {
  /**
   * Limit in ms from the start of the process.
   * @default the tool's own, else 30,000
   * @limit 1 to 86,400,000 ms (a day)
   */
  timeoutMs?: number | undefined;
  /**
   * Time in ms within which the call must start; else it fails with `not-started` and never runs.
   * @default no limit
   * @limit 1 to 86,400,000 ms (a day)
   */
  startDeadlineMs?: number | undefined;
  /**
   * Name that the caller gives to the call, such as a model's id. The result and the events of the call have it.
   * @default an id that is made for the call
   * @limit 256 characters
   */
  callId?: string | undefined;
  /**
   * Time in ms for which a question about the call may wait for a person; else it fails with `approval-expired`.
   * @default 600,000 (10 minutes)
   * @limit 1 to 86,400,000 ms (a day)
   */
  approvalTimeoutMs?: number | undefined;
  /** Called when the call begins to wait for a person. `fleet.approvals` lists the question, with the call's id. */
  onApproval?: (() => void) | undefined;
  /** Called with the reason every 2 s while the call has not started and no person is asked. */
  onWaiting?: ((wait: ToolWait) => void) | undefined;
  /** Cancels the call and rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
}

const CLIENT = { kind: SpanKind.CLIENT } as const;

const milliseconds = z
  .int('must be a whole number of milliseconds')
  .positive('must be positive')
  .max(LIMITS.timeoutMs, `must be at most ${LIMITS.timeoutMs}`)
  .optional();

const requestSchema = z.object({
  name: z.string('must be a string'),
  timeoutMs: milliseconds,
  startDeadlineMs: milliseconds,
  approvalTimeoutMs: milliseconds,
  callId: toolCallIdSchema.optional(),
});

export function callTool(
  context: ToolCallContext,
  name: string,
  args: unknown,
  options: ToolCallOptions,
): Promise<ToolResult> {
  const attributes = () => ({ [ATTRIBUTES.toolOperation]: 'execute_tool' });
  return inSpan(SPANS.callTool, CLIENT, attributes, async (span) => {
    const result = await callNow(context, name, args, options);
    if (span !== undefined) describeResult(span, name, result);
    return result;
  });
}

function describeResult(span: Span, name: string, result: ToolResult): void {
  span.setAttributes({ [ATTRIBUTES.genAiToolName]: name.slice(0, 64), [ATTRIBUTES.genAiToolCall]: result.callId });
  if (result.ok) return;
  span.setAttribute(ATTRIBUTES.errorType, result.error.code).setStatus({ code: SpanStatusCode.ERROR });
}

async function callNow(
  context: ToolCallContext,
  name: string,
  args: unknown,
  { signal, onApproval, onWaiting, ...options }: ToolCallOptions,
): Promise<ToolResult> {
  const request = parseOrThrow(requestSchema, { name, ...options }, 'COMMAND_INVALID', 'The tool call');
  signal?.throwIfAborted();
  const { tenant } = context;
  const call = { id: context.nextId(), tenant, name, inbox: context.inboxId, callId: request.callId };
  const fail = (code: ToolErrorCode, message: string) => toolFailure(callNameOf(call), code, message);
  if (!(await isKnown(context, name))) return fail('unknown-tool', `unknown tool: ${name.slice(0, 200)}`);
  const text = toArguments(name, args);
  if (typeof text !== 'string') return fail(text.code, text.message);

  await context.openInbox();
  const ended = new AbortController();
  const nextHint = () => {
    const next = context.replies.expect(call.id, ended.signal);
    next.catch(() => {});
    return next;
  };
  const hint = nextHint();
  try {
    const job = await toJob(context, call, text, request);
    await context.tools.add(name, job);
    return await waitForTool(context, call, {
      addAgain: () => context.tools.add(name, job),
      onApproval,
      onWaiting,
      hint,
      nextHint,
      startDeadlineMs: request.startDeadlineMs,
      signal,
    });
  } catch (error) {
    if (signal?.aborted) await cancel(context, call).catch(() => {});
    throw error;
  } finally {
    ended.abort();
  }
}

/** Tells whether a host offers the tool, or has offered it within the last day. */
async function isKnown(context: ToolCallContext, name: string): Promise<boolean> {
  if (!toolNameSchema.safeParse(name).success) return false;
  try {
    const offeredAt = await context.redis.zscore(context.fleet.knownTools, name);
    return offeredAt !== null && Number(offeredAt) > Date.now() - LIMITS.toolKnownMs;
  } catch (error) {
    throw toQueueError(error);
  }
}

function toArguments(name: string, args: unknown): string | { code: ToolErrorCode; message: string } {
  try {
    const text = toJsonText(args, 'args');
    const bytes = Buffer.byteLength(text);
    if (bytes <= LIMITS.toolArgumentBytes) return text;
    const message = `the arguments of tool '${name}' are ${bytes} bytes; the limit is ${LIMITS.toolArgumentBytes}`;
    return { code: 'too-large', message };
  } catch (error) {
    if (!(error instanceof NotJsonError)) throw error;
    const message = `tool '${name}' or its arguments are not JSON (${error.message}). Use plain values.`;
    return { code: 'not-json', message };
  }
}

async function toJob(
  context: ToolCallContext,
  call: ToolCallRef,
  text: string,
  request: z.infer<typeof requestSchema>,
) {
  const { timeoutMs, startDeadlineMs, approvalTimeoutMs } = request;
  const traced = carryActive();
  return {
    call: entryIdSchema.parse(call.id),
    ...(call.callId === undefined ? {} : { callId: call.callId }),
    tenant: tenantIdSchema.parse(call.tenant),
    inbox: entryIdSchema.parse(call.inbox),
    args: context.sealer.seal(
      JSON.stringify({ args: text, submittedBy: context.caller }),
      sealPlace('tool-args', context, call),
    ),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(approvalTimeoutMs === undefined ? {} : { approvalTimeoutMs }),
    ...(startDeadlineMs === undefined ? {} : { deadline: (await redisTimeMs(context)) + startDeadlineMs }),
    ...(traced === undefined ? {} : { trace: traced }),
  };
}

async function redisTimeMs({ redis }: ToolCallContext): Promise<number> {
  try {
    const [seconds, microseconds] = await redis.time();
    return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  } catch (error) {
    throw toQueueError(error);
  }
}

/** Prevents the call from starting, or makes its host end it. */
async function cancel(context: ToolCallContext, call: ToolCallRef): Promise<void> {
  const { redis, fleet } = context;
  if (await beginToolCall(redis, fleet, call, `cancelled ${context.id}`, LIMITS.timeoutMs)) {
    await withdrawAskers(redis, approvalKeys(context.namespace, context.tenant), [askerOf(call)]);
    await context.tools.remove(call);
    return;
  }
  const { begun } = await readToolCall(redis, fleet, call);
  const [host = ''] = begun?.split(' ') ?? [];
  const signed = signToolCancel(context.sealer, fleet, call);
  await callHost(context.redis, context.namespace, host, {
    type: 'cancel-tool',
    tenant: call.tenant,
    call: call.id,
    signed,
  });
}
