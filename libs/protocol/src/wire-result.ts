import { z } from 'zod';
import { firstAttemptSchema } from './approval-data.ts';
import { wireErrorSchema } from './errors.ts';
import type { Result } from './result.ts';
import { toReceipt, wireReceiptSchema } from './wire-receipt.ts';

const NOT_TRUNCATED = { bytes: false, lines: false };
const NO_OUTPUT = { stdoutBytes: 0, stderrBytes: 0, stdoutLines: 0, stderrLines: 0 };

const count = z.number().default(0);
/** Each default is the value of most Results, which encodeWireResult() leaves out. */
const fields = {
  signal: z.string().nullable().default(null),
  stdout: z.string().default(''),
  stderr: z.string().default(''),
  output: z.string().optional(),
  truncated: z.object({ bytes: z.boolean(), lines: z.boolean() }).default(NOT_TRUNCATED),
  totals: z
    .object({ stdoutBytes: count, stderrBytes: count, stdoutLines: count, stderrLines: count })
    .default(NO_OUTPUT),
  redactions: z.record(z.string(), z.number()).default({}),
  shell: z
    .object({ state: z.enum(['kept', 'partial', 'lost']), reason: z.string().min(1).optional(), epoch: z.number() })
    .refine(({ state, reason }) => state === 'kept' || reason !== undefined, 'a state that was not kept has a reason'),
  timings: z.object({ queuedMs: z.number(), startMs: z.number(), runMs: z.number(), totalMs: z.number() }),
  receipt: wireReceiptSchema.optional(),
  usage: z.object({ cpuMs: z.number(), peakMemoryBytes: z.number() }).optional(),
  hostId: z.string().nullable().default(null),
  imageDigest: z.string().optional(),
  attempts: z.number().optional(),
  outside: z.literal(true).optional(),
  denied: z
    .object({ what: z.enum(['files', 'network', 'system-call']), line: z.string(), mayAsk: z.boolean() })
    .optional(),
  refused: z.string().optional(),
  /**
   * Sealed text that replaces a denial's `stderr`, `refused`, or the text of an `error`: each may quote the script or
   * the spec.
   */
  sealedReason: z.string().optional(),
  firstAttempt: firstAttemptSchema.optional(),
};
const blockedSchema = z.object({ type: z.string(), reason: z.enum(['matched', 'too-slow']) });
const mayBlock = { blocked: z.optional(blockedSchema) };
const noExitCode = z.null().default(null);
const ownEnd = z.enum(['exited', 'signalled', 'oom', 'host-memory']);

/**
 * A Result as stored in an event. The event has the ids. `output` is absent if it equals the only stream with output,
 * and a field with a default if it has that.
 */
export const wireResultSchema = z.discriminatedUnion('outcome', [
  z.object({
    ...fields,
    outcome: z.literal('success'),
    exitCode: count,
    reason: z.literal('exited').default('exited'),
  }),
  z.object({ ...fields, outcome: z.literal('failure'), exitCode: z.number(), reason: ownEnd }),
  z.object({
    ...{ ...fields, ...mayBlock },
    outcome: z.literal('timeout'),
    exitCode: noExitCode,
    reason: z.enum(['wall', 'no-output', 'not-started']),
    limitMs: z.number().optional(),
  }),
  z.object({
    ...{ ...fields, ...mayBlock },
    outcome: z.literal('cancellation'),
    exitCode: noExitCode,
    reason: z.literal('cancelled'),
    cancelReason: z.string().min(1).optional(),
  }),
  z.object({
    ...fields,
    outcome: z.literal('denial'),
    exitCode: noExitCode,
    reason: z.enum(['rules', 'approver']),
  }),
  z.object({ ...fields, outcome: z.literal('blocked'), exitCode: z.number(), reason: ownEnd, blocked: blockedSchema }),
  z.object({
    ...{ ...fields, ...mayBlock },
    outcome: z.literal('lost'),
    exitCode: noExitCode,
    reason: z.enum(['host-lost', 'container-removed']).optional(),
  }),
  z.object({
    ...{ ...fields, ...mayBlock },
    outcome: z.literal('error'),
    exitCode: noExitCode,
    reason: z.enum(['oom', 'host-memory', 'disk', 'container-removed']).optional(),
    error: wireErrorSchema,
  }),
]);
export type WireResult = z.infer<typeof wireResultSchema>;

type Fields = { [field in keyof typeof fields]: z.infer<(typeof fields)[field]> };
/** The fields of a WireResult that its outcome does not determine. */
export type WireFields = Omit<Fields, Optional> & Partial<Pick<Fields, Optional>>;
type Optional = 'output' | (typeof OPTIONAL)[number];
const OPTIONAL = [
  ...(['receipt', 'usage', 'imageDigest', 'attempts', 'outside', 'denied', 'refused'] as const),
  ...(['sealedReason', 'firstAttempt'] as const),
] as const;
type OwnFields<T> = T extends unknown ? Omit<T, keyof Fields> : never;
type WithoutNull<T> = T extends { exitCode: null } ? Omit<T, 'exitCode'> : T;
/** The fields that an outcome determines. `exitCode` is given only for outcomes that have an exit code. */
export type ResultEnd = WithoutNull<OwnFields<WireResult>>;

/**
 * Returns the Result of an entry that ended as `end` describes. `rest` is left out if the entry never ran, or nothing
 * is known of its run.
 */
export function newResult(end: ResultEnd, rest: Partial<WireFields> = {}): WireResult {
  const empty: WireFields = {
    signal: null,
    stdout: '',
    stderr: '',
    truncated: NOT_TRUNCATED,
    totals: NO_OUTPUT,
    redactions: {},
    shell: { state: 'kept', epoch: 0 },
    timings: { queuedMs: 0, startMs: 0, runMs: 0, totalMs: 0 },
    hostId: null,
  };
  return { exitCode: null, ...end, ...empty, ...rest } as WireResult;
}

/** Returns the fields that the outcome does not determine, for a Result of another outcome. */
export function fieldsOf(result: WireResult): WireFields {
  const { signal, stdout, stderr, output, truncated, totals, redactions, shell, timings, hostId } = result;
  const optional = OPTIONAL.filter((name) => result[name] !== undefined).map((name) => [name, result[name]]);
  return {
    ...{ signal, stdout, stderr, truncated, totals, redactions, shell, timings, hostId },
    ...(output !== undefined && { output }),
    ...Object.fromEntries(optional),
  };
}

/** Returns the JSON of a Result, without what a reader can derive: defaults, and `output` of one stream. */
export function encodeWireResult(result: WireResult): string {
  const { outcome, exitCode, reason, signal, stdout, stderr, truncated, totals, redactions, hostId } = result;
  const isSuccess = outcome === 'success';
  // JSON.stringify() leaves out what is undefined.
  return JSON.stringify({
    ...result,
    exitCode: exitCode === (isSuccess ? 0 : null) ? undefined : exitCode,
    reason: isSuccess ? undefined : reason,
    signal: signal ?? undefined,
    stdout: stdout || undefined,
    stderr: stderr || undefined,
    output: toStoredOutput(result),
    truncated: truncated.bytes || truncated.lines ? truncated : undefined,
    totals: toStoredTotals(totals),
    redactions: Object.keys(redactions).length > 0 ? redactions : undefined,
    hostId: hostId ?? undefined,
  });
}

/** Returns `output`, or undefined if a reader can derive it from the two streams. */
export function toStoredOutput({ stdout, stderr, output }: WireResult): string | undefined {
  return (stdout === '' || stderr === '') && output === stdout + stderr ? undefined : output;
}

function toStoredTotals({ stdoutBytes, stderrBytes, stdoutLines, stderrLines }: WireResult['totals']) {
  if (stdoutBytes === 0 && stderrBytes === 0 && stdoutLines === 0 && stderrLines === 0) return undefined;
  return {
    stdoutBytes: stdoutBytes || undefined,
    stderrBytes: stderrBytes || undefined,
    stdoutLines: stdoutLines || undefined,
    stderrLines: stderrLines || undefined,
  };
}

export function fromWireResult(
  ids: { commandId: string; sessionId: string },
  wire: WireResult,
  deduplicated = false,
): Result {
  const output = wire.output ?? wire.stdout + wire.stderr;
  return { ...ids, ...wire, receipt: toReceipt(wire), output, deduplicated };
}
