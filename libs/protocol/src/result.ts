import { z } from 'zod';
import { wireErrorSchema } from './errors.ts';

export const OUTCOMES = [
  'success',
  'failure',
  'timeout',
  'cancellation',
  'denial',
  'blocked',
  'lost',
  'error',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

export const REASONS = [
  'exited',
  'signalled',
  'wall',
  'not-started',
  'no-output',
  'oom',
  'cancelled',
  'container-removed',
  'host-lost',
  'disk',
  'policy',
  'approver',
] as const;
export type Reason = (typeof REASONS)[number];

const totalsSchema = z.object({
  stdoutBytes: z.number(),
  stderrBytes: z.number(),
  stdoutLines: z.number(),
  stderrLines: z.number(),
});
const timingsSchema = z.object({ queuedMs: z.number(), startMs: z.number(), runMs: z.number(), totalMs: z.number() });
const shellSchema = z
  .object({
    state: z.enum(['kept', 'partial', 'lost']),
    /** Why the state was not kept, in words. Present unless the state is `kept`. */
    reason: z.string().min(1).optional(),
    epoch: z.number(),
  })
  .refine(({ state, reason }) => state === 'kept' || reason !== undefined, 'a lost state must have a reason');

/** A Result as it is stored in the stream, whose entry has the ids. `output` is absent where it equals the only stream with output. */
export const wireResultSchema = z.object({
  outcome: z.enum(OUTCOMES),
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  reason: z.enum(REASONS).optional(),
  /** Of a cancellation: why, in the words of who cancelled it. */
  cancelReason: z.string().min(1).optional(),
  stdout: z.string(),
  stderr: z.string(),
  output: z.string().optional(),
  truncated: z.object({ bytes: z.boolean(), lines: z.boolean() }),
  totals: totalsSchema,
  redactions: z.record(z.string(), z.number()),
  shell: shellSchema,
  timings: timingsSchema,
  hostId: z.string().nullable(),
  /** How often it was started, when more than once: only a command with `retry: 'idempotent'`. */
  attempts: z.number().optional(),
  error: wireErrorSchema.optional(),
});
export type WireResult = z.infer<typeof wireResultSchema>;

export interface Result extends Omit<WireResult, 'output'> {
  commandId: string;
  sessionId: string;
  /** Both streams in the order in which the worker received them. */
  output: string;
  deduplicated: boolean;
}

/** The Result of an entry that never ran, or of whose run nothing is known. */
export function emptyResult(outcome: Outcome, rest: Partial<WireResult> = {}): WireResult {
  return {
    outcome,
    exitCode: null,
    signal: null,
    stdout: '',
    stderr: '',
    truncated: { bytes: false, lines: false },
    totals: { stdoutBytes: 0, stderrBytes: 0, stdoutLines: 0, stderrLines: 0 },
    redactions: {},
    shell: { state: 'kept', epoch: 0 },
    timings: { queuedMs: 0, startMs: 0, runMs: 0, totalMs: 0 },
    hostId: null,
    ...rest,
  };
}

/** Drops `output` where a reader can derive it from the streams. */
export function toWireResult(result: WireResult): WireResult {
  const { output, ...rest } = result;
  const derivable =
    output === undefined || output === rest.stdout + rest.stderr ? rest.stdout === '' || rest.stderr === '' : false;
  return derivable || output === undefined ? rest : { ...rest, output };
}

export function fromWireResult(
  ids: { commandId: string; sessionId: string },
  wire: WireResult,
  deduplicated = false,
): Result {
  return { ...ids, ...wire, output: wire.output ?? wire.stdout + wire.stderr, deduplicated };
}
