import { randomUUID } from 'node:crypto';
import { beginToolCall, endToolCall, sayToolEvent, sendReply, type ToolCallRef } from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  type AuditEvent,
  ensureShellfleetError,
  isShellfleetError,
  LIMITS,
  nameSpan,
  parseOrThrow,
  type ShellfleetError,
  SPANS,
  sealedToolArgsSchema,
  type ToolError,
  type ToolErrorCode,
  type ToolJob,
  toolJobId,
  toolJobSchema,
  tryJson,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import { sealPlace, unauthorized } from '@shellfleet/sealing';
import type { Rules } from '../admission/create-admission.ts';
import type { ToolApprovals } from '../approvals/tool-approvals.ts';
import type { LogFields } from '../log/logger.ts';
import type { FoundToolJob } from '../queue/tool-jobs.ts';
import type { HostServices } from '../run/host-services.ts';
import { fail, runInSpan } from '../tracing/spans.ts';
import type { Tool } from './load-tools.ts';
import { redactJsonText } from './redact-json.ts';
import type { ToolLauncher } from './tool-launcher.ts';
import type { ToolProcessEnd } from './tool-process.ts';

export interface CallDeps extends HostServices {
  processes: ToolLauncher;
  redact(text: string): string;
  /** Evaluates the rules for a call of a tool. */
  decide: Rules['decideTool'];
  approvals: Pick<ToolApprovals, 'admit'>;
  /** Aborts when this process no longer stores results of calls. */
  abandoned: AbortSignal;
}

/** Time for a person to answer. Commands have the same default. */
const APPROVAL_TIMEOUT_MS = 600_000;

export type StopReason = 'cancelled' | 'host-stopped';

type Outcome = { ok: true; output: string } | { ok: false; error: ToolError };

/** Parses the call in a job. Undefined when invalid: any client of the tenant can write jobs. */
export function parseToolJob(found: FoundToolJob): ToolJob | undefined {
  const { data } = toolJobSchema.safeParse(found.data);
  return data?.tenant === found.tenant && found.id === toolJobId(data.call) ? data : undefined;
}

/** Runs one call from the queue to its result. A call that began before, on any host, does not begin again. */
export function runCall(
  tool: Tool,
  found: FoundToolJob,
  job: ToolJob,
  stop: AbortSignal,
  deps: CallDeps,
): Promise<void> {
  if (!deps.isTracing) return runNow(tool, found, job, stop, deps).then(() => {});
  const attributes = {
    [ATTRIBUTES.toolOperation]: 'execute_tool',
    [ATTRIBUTES.genAiToolName]: tool.name,
    [ATTRIBUTES.genAiToolCall]: job.callId ?? job.call,
    [ATTRIBUTES.hostId]: deps.hostId,
  };
  return runInSpan(nameSpan(SPANS.tool, tool.name), { attributes }, job.trace, async (span) => {
    const errorType = await runNow(tool, found, job, stop, deps);
    if (errorType !== undefined) fail(span, errorType);
  });
}

/** Runs a call. Returns the code of its error, if it ended with one. */
async function runNow(
  tool: Tool,
  found: FoundToolJob,
  job: ToolJob,
  stop: AbortSignal,
  deps: CallDeps,
): Promise<ToolErrorCode | undefined> {
  const { redis, fleet, hostId, logger } = deps;
  const ref: ToolCallRef = { id: job.call, tenant: job.tenant, name: tool.name, inbox: job.inbox, callId: job.callId };
  const timeoutMs = timeoutOf(tool, job);
  const by = `${hostId} ${deps.boot} ${randomUUID()}`;
  const begin = () => retryWhileRedisIsDown(() => beginToolCall(redis, fleet, ref, by, timeoutMs), deps.abandoned);
  const admitted = await admitCall(job, ref, begin, deps);
  await found.remove();
  if (admitted.type === 'asks') {
    // The caller looks for the question, and queues the call again when it is answered.
    await sendReply(redis, fleet.namespace, job, { id: job.call, sealed: '' }).catch(() => {});
    return undefined;
  }
  if (!admitted.begun) return undefined;
  logger.debug(callFields(ref), 'tool.started');
  const startedAt = performance.now();
  // The call has begun, so every error from here on becomes its result.
  const outcome = await runOnce(tool, job, ref, timeoutMs, stop, { ...deps, denial: admitted.denial }).catch(
    (err: unknown) => {
      logger.error({ err, ...callFields(ref) }, 'tool.failed');
      return failure('error', `host ${hostId} failed to run the tool; its log says why`);
    },
  );
  deps.metrics?.toolEnded(outcome.ok ? 'success' : outcome.error.code, performance.now() - startedAt);
  deps.audit.note(job.tenant, () => toEndEvent(ref, outcome));
  await retryWhileRedisIsDown(() => endToolCall(redis, fleet, ref, toEnd(ref, outcome, deps)), deps.abandoned);
  logger.debug(
    {
      ...callFields(ref),
      ...(outcome.ok ? {} : { [ATTRIBUTES.errorType]: outcome.error.code }),
    },
    'tool.ended',
  );
  return outcome.ok ? undefined : outcome.error.code;
}

interface BegunDeps extends CallDeps {
  /** Reason why the call does not run. */
  denial: Denial | undefined;
}

type Admitted = { type: 'asks' } | { type: 'decided'; begun: boolean; denial: Denial | undefined };
type Denial = { code: 'denied' | 'approval-expired'; reason: string };

/** Begins a call, unless a person must be asked first. A denied call begins too, because it has a result. */
async function admitCall(
  job: ToolJob,
  ref: ToolCallRef,
  begin: () => Promise<boolean>,
  deps: CallDeps,
): Promise<Admitted> {
  const decision = deps.decide(ref.name);
  if (decision.type === 'allow') return { type: 'decided', begun: await begin(), denial: undefined };
  if (decision.type === 'forbid')
    return { type: 'decided', begun: await begin(), denial: { code: 'denied', reason: decision.reason } };
  const opened = openArgs(job, ref, deps);
  // `runBegun` ends the call with this error.
  if (isShellfleetError(opened)) return { type: 'decided', begun: await begin(), denial: undefined };
  const { tenant, id, name } = ref;
  const call = {
    tenant,
    id,
    name,
    args: opened.args,
    submittedBy: opened.submittedBy,
    approvalTimeoutMs: job.approvalTimeoutMs ?? APPROVAL_TIMEOUT_MS,
  };
  const verdict = await deps.approvals.admit(
    call,
    decision.question,
    (text) => redactJsonText(text, deps.redact),
    begin,
  );
  if ('begun' in verdict) return { type: 'decided', begun: verdict.begun, denial: undefined };
  if (verdict.type === 'deny') return { type: 'decided', begun: await begin(), denial: verdict };
  const { question } = verdict;
  const { submittedBy } = opened;
  deps.audit.note(tenant, () => ({ type: 'tool-asks', tool: name, call: id, question, submittedBy }));
  return { type: 'asks' };
}

/** Runs a call, unless this host has begun it before: Redis came back with older data, or somebody queued it again. */
async function runOnce(
  tool: Tool,
  job: ToolJob,
  ref: ToolCallRef,
  timeoutMs: number,
  stop: AbortSignal,
  deps: BegunDeps,
): Promise<Outcome> {
  const begun = { namespace: deps.fleet.namespace, tenant: job.tenant, of: tool.name, id: job.call };
  if (deps.journal.knows(begun)) {
    if (deps.sealer.verifies && !deps.redisLosses.mayHaveHappened()) return refused(replayed(ref, deps), ref, deps);
    return failure('lost', `host ${deps.hostId} began this call before; whether it took effect is not known`);
  }
  deps.journal.record(begun, deps.boot);
  return runBegun(tool, job, ref, timeoutMs, stop, deps);
}

async function runBegun(
  tool: Tool,
  job: ToolJob,
  ref: ToolCallRef,
  timeoutMs: number,
  stop: AbortSignal,
  deps: BegunDeps,
): Promise<Outcome> {
  const { redis, fleet, hostId } = deps;
  if (job.deadline !== undefined && (await redisTimeMs(redis)) > job.deadline) {
    return failure('not-started', `tool '${tool.name}' did not start in time`);
  }
  if (deps.denial !== undefined) {
    const { code, reason } = deps.denial;
    // A denial is recorded before it takes effect. If that fails, the call ends with AUDIT_UNAVAILABLE.
    await deps.audit.record(job.tenant, toEndEvent(ref, failure(code, reason)));
    return failure(code, `tool '${tool.name}' was not called: ${reason}`);
  }
  const opened = openArgs(job, ref, deps);
  if (isShellfleetError(opened)) return refused(opened, ref, deps);
  const { args, submittedBy, signature } = opened;
  const submitter = { submittedBy, producer: signature?.signer };
  deps.audit.note(job.tenant, () => ({ type: 'tool-start', tool: ref.name, call: ref.id, ...submitter }));
  const at = new Date().toISOString();
  await sayToolEvent(redis, fleet, job.tenant, {
    type: 'call.started',
    at,
    callId: job.callId ?? job.call,
    name: tool.name,
    hostId,
  }).catch((err: unknown) => deps.logger.warn({ err }, 'tool.event-failed'));
  const end = await deps.processes.run(tool, {
    request: {
      type: 'call',
      module: tool.module,
      exported: tool.exported,
      name: tool.name,
      outputBytes: LIMITS.toolOutputBytes,
    },
    args,
    timeoutMs,
    outputBytes: LIMITS.toolOutputBytes,
    signal: stop,
  });
  return toOutcome(tool, end, timeoutMs, stop, deps);
}

function toOutcome(tool: Tool, end: ToolProcessEnd, timeoutMs: number, stop: AbortSignal, deps: CallDeps): Outcome {
  if (end.type === 'reported' && end.report.type === 'output') {
    const output = end.body.toString('utf8');
    return { ok: true, output: end.report.redacted ? output : redactJsonText(output, deps.redact) };
  }
  const error = toError(tool, end, timeoutMs, stop, deps.hostId);
  const { stdout, stderr } = end;
  const context = {
    ...error.context,
    ...(stdout === '' ? {} : { stdout: deps.redact(stdout) }),
    ...(stderr === '' ? {} : { stderr: deps.redact(stderr) }),
  };
  return { ok: false, error: { code: error.code, message: deps.redact(error.message), context } };
}

function toError(tool: Tool, end: ToolProcessEnd, timeoutMs: number, stop: AbortSignal, hostId: string): ToolError {
  switch (end.type) {
    case 'timeout':
      return toolError('timeout', `tool exceeded ${timeoutMs} ms`, { timeoutMs });
    case 'stopped':
      return (stop.reason as StopReason) === 'cancelled'
        ? toolError('cancelled', 'tool was cancelled by its caller')
        : toolError('lost', `host ${hostId} was stopped while the tool ran; whether it took effect is not known`);
    case 'too-large':
      return toolError('too-large', `the output of tool '${tool.name}' is over ${LIMITS.toolOutputBytes} bytes`);
    case 'died': {
      const { exitCode, signal } = end;
      return end.outOfMemory
        ? toolError('memory', `tool ran out of memory; the limit is ${tool.memoryBytes} bytes`, {
            memoryBytes: tool.memoryBytes,
          })
        : toolError('died', 'subprocess exited without producing a result', { exitCode, signal });
    }
    case 'reported':
      return end.report.type === 'failed'
        ? end.report.error
        : toolError('died', 'subprocess exited without producing a result');
  }
}

function toEnd(ref: ToolCallRef, outcome: Outcome, { sealer, fleet, hostId }: CallDeps) {
  // The output is inserted unchanged, since it already is JSON.
  const host = JSON.stringify(hostId);
  const text = outcome.ok
    ? `{"ok":true,"hostId":${host},"output":${outcome.output}}`
    : JSON.stringify({ ok: false, hostId, error: outcome.error });
  return {
    sealed: sealer.seal(text, sealPlace('tool-result', fleet, ref)),
    hostId,
    ok: outcome.ok,
    code: outcome.ok ? undefined : outcome.error.code,
  };
}

function openArgs(job: ToolJob, ref: ToolCallRef, { sealer, fleet, logger }: CallDeps) {
  try {
    const { plain, signature } = sealer.openSigned(job.args, sealPlace('tool-args', fleet, ref));
    return { ...parseOrThrow(sealedToolArgsSchema, tryJson(plain), 'INTERNAL', 'The arguments'), signature };
  } catch (err) {
    logger.warn({ err, ...callFields(ref) }, 'tool.arguments-unopened');
    return ensureShellfleetError(err);
  }
}

/** Returns the fields of a log that name a tool call. */
export const callFields = ({ tenant, name, id }: Pick<ToolCallRef, 'tenant' | 'name' | 'id'>): LogFields => ({
  [ATTRIBUTES.tenant]: tenant,
  [ATTRIBUTES.toolName]: name,
  [ATTRIBUTES.toolCall]: id,
});

function replayed(ref: ToolCallRef, { sealer, fleet }: CallDeps): ShellfleetError {
  try {
    sealer.refuse(sealPlace('tool-args', fleet, ref), 'this host began it before');
  } catch (error) {
    return ensureShellfleetError(error);
  }
  return unauthorized();
}

/** Ends a call whose arguments could not be opened. A refused signature is recorded in the audit first. */
async function refused({ code, message }: ShellfleetError, { tenant }: ToolCallRef, deps: CallDeps): Promise<Outcome> {
  if (code !== 'UNAUTHORIZED')
    return failure('error', `host ${deps.hostId} cannot open the arguments: another seal key, or a changed call`);
  await deps.audit.recorded(tenant);
  return failure('denied', message);
}

function toEndEvent({ name, id }: ToolCallRef, outcome: Outcome): AuditEvent {
  return { type: 'tool-end', tool: name, call: id, outcome: outcome.ok ? 'success' : outcome.error.code };
}

function timeoutOf(tool: Tool, { timeoutMs }: ToolJob): number {
  if (timeoutMs === undefined) return tool.timeoutMs;
  return tool.timeoutIsMost ? Math.min(timeoutMs, tool.timeoutMs) : timeoutMs;
}

async function redisTimeMs(redis: HostServices['redis']): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

function failure(code: ToolErrorCode, message: string): Outcome {
  return { ok: false, error: toolError(code, message) };
}

function toolError(code: ToolErrorCode, message: string, context?: Record<string, unknown>): ToolError {
  return { code, message: `Shellfleet: ${message}`, ...(context === undefined ? {} : { context }) };
}
