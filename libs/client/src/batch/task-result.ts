import { OUTCOMES, type Outcome, type Result, type WireError, wireErrorSchema } from '@shellfleet/protocol';
import { z } from 'zod';

/** How a task ended: one line of a results file. */
export interface TaskResult {
  /** Id of the task, or `<task>#<repeat>` in a batch with repeats. Unique in a results file. */
  id: string;
  /** Id of the task as it was given. */
  task: string;
  /** Number of the repeat, from 1. */
  repeat: number;
  /** Whether the task passed: what its `grade` decided, or without one whether every script succeeded. */
  passed: boolean;
  /** Score that the grade printed, else 1 if it passed and 0 if not. Absent when no grade was decided. */
  score?: number | undefined;
  /** The outcome of the first command that did not succeed, apart from the grade's own failure; else `success`. */
  outcome: Outcome;
  /** Step in which the task ended before its end. Absent when all its steps were done. */
  endedIn?: TaskStep | undefined;
  /**
   * Why the batch ended the task: its own deadline, that of the batch, the first failure of another task, or the
   * caller's signal. Absent when the batch did not end it.
   */
  endedBy?: EndedBy | undefined;
  /** Session of the last attempt, or empty. */
  sessionId: string;
  /** The Results of the `setup` scripts that ran, in their order. Absent for a task without `setup`. */
  setup?: Result[] | undefined;
  /** The Results of the scripts that ran, in their order. */
  results: Result[];
  /** The Result of the grade. Absent when it did not run. */
  grade?: Result | undefined;
  /** For each of `outputs`, by its path in the sandbox: where it is on this machine, or why it could not be fetched. */
  outputs?: Record<string, TaskOutput> | undefined;
  /** Present when a step could not be done. */
  error?: WireError | undefined;
  /** Attempts, over all drivers of a resumed batch. */
  attempts: number;
  /** When the batch began the task, by the clock of its machine; ISO 8601. */
  startedAt: string;
  /** Duration in ms of all attempts of this driver together, waiting included. */
  durationMs: number;
  /** Bytes that the commands of the last attempt printed, after redaction, also those that the Results lack. */
  outputBytes: number;
  /** Processor time in ms of the commands of the last attempt. Absent when it is known of none of them. */
  cpuMs?: number | undefined;
  /** Highest memory of their sandboxes in bytes, cached files included. Absent when it is known of none of them. */
  peakMemoryBytes?: number | undefined;
}

/** The steps of a task, in their order. */
const TASK_STEPS = ['files', 'setup', 'script', 'outputs', 'grade'] as const;
export type TaskStep = (typeof TASK_STEPS)[number];

const ENDED_BY = ['deadline', 'batch-deadline', 'failure', 'signal'] as const;
export type EndedBy = (typeof ENDED_BY)[number];

/** What became of one of the `outputs` of a task. */
export interface TaskOutput {
  /** Path on this machine. Absent when it could not be fetched. */
  path?: string | undefined;
  /** Why it could not be fetched. */
  error?: WireError | undefined;
}

/** How a task counts. `infrastructure`: the fleet failed, so nothing is known about the task. */
export type TaskVerdict = 'passed' | 'failed' | 'infrastructure' | 'cancelled';

/** Tells how a task counts in progress, reports and exit codes. */
export function verdictOf({ passed, outcome }: Pick<TaskResult, 'passed' | 'outcome'>): TaskVerdict {
  if (outcome === 'cancellation') return 'cancelled';
  if (outcome === 'error' || outcome === 'lost') return 'infrastructure';
  return passed ? 'passed' : 'failed';
}

// The Results inside of a line come from this library, so they are not checked in full.
const resultSchema = z.custom<Result>((value) => typeof (value as Result | null)?.commandId === 'string');

/** One line of a results file. */
export const taskResultSchema: z.ZodType<TaskResult> = z.object({
  id: z.string(),
  task: z.string(),
  repeat: z.number(),
  passed: z.boolean(),
  score: z.number().optional(),
  outcome: z.enum(OUTCOMES),
  endedIn: z.enum(TASK_STEPS).optional(),
  endedBy: z.enum(ENDED_BY).optional(),
  sessionId: z.string(),
  setup: z.array(resultSchema).optional(),
  results: z.array(resultSchema),
  grade: resultSchema.optional(),
  outputs: z
    .record(z.string(), z.object({ path: z.string().optional(), error: wireErrorSchema.optional() }))
    .optional(),
  error: wireErrorSchema.optional(),
  attempts: z.number(),
  startedAt: z.string(),
  durationMs: z.number(),
  outputBytes: z.number(),
  cpuMs: z.number().optional(),
  peakMemoryBytes: z.number().optional(),
});
