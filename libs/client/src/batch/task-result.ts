import {
  OUTCOMES,
  type Outcome,
  type Result,
  resultSchema,
  type WireError,
  wireErrorSchema,
} from '@shellfleet/protocol';
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

const taskOutputSchema = z
  .object({
    path: z.string().optional().meta({ description: 'Path on this machine. Absent when it could not be fetched.' }),
    error: wireErrorSchema.optional().meta({ description: 'Why it could not be fetched.' }),
  })
  .meta({ id: 'TaskOutput', description: 'What became of one of the `outputs` of a task.' });

const fieldsSchema = z.object({
  id: z
    .string()
    .meta({ description: 'Id of the task, or `<task>#<repeat>` in a batch with repeats. Unique in a results file.' }),
  task: z.string().meta({ description: 'Id of the task as it was given.' }),
  repeat: z.number().meta({ description: 'Number of the repeat, from 1.' }),
  passed: z.boolean().meta({
    description: 'Whether the task passed: what its `grade` decided, or without one whether every script succeeded.',
  }),
  score: z.number().optional().meta({
    description: 'Score that the grade printed, else 1 if it passed and 0 if not. Absent when no grade was decided.',
  }),
  outcome: z.enum(OUTCOMES).meta({
    description:
      "The outcome of the first command that did not succeed, apart from the grade's own failure; else " + '`success`.',
  }),
  endedIn: z
    .enum(TASK_STEPS)
    .optional()
    .meta({ description: 'Step in which the task ended before its end. Absent when all its steps were done.' }),
  endedBy: z
    .enum(ENDED_BY)
    .optional()
    .meta({
      description:
        'Why the batch ended the task: its own deadline, that of the batch, the first failure of another ' +
        "task, or the caller's signal. Absent when the batch did not end it.",
    }),
  sessionId: z.string().meta({ description: 'Session of the last attempt, or empty.' }),
  outputs: z
    .record(z.string(), taskOutputSchema)
    .optional()
    .meta({
      description:
        'For each of `outputs`, by its path in the sandbox: where it is on this machine, or why it could ' +
        'not be fetched.',
    }),
  error: wireErrorSchema.optional().meta({ description: 'Present when a step could not be done.' }),
  attempts: z.number().meta({ description: 'Attempts, over all drivers of a resumed batch.' }),
  startedAt: z.string().meta({ description: 'When the batch began the task, by the clock of its machine; ISO 8601.' }),
  durationMs: z
    .number()
    .meta({ description: 'Duration in ms of all attempts of this driver together, waiting included.' }),
  outputBytes: z.number().meta({
    description:
      'Bytes that the commands of the last attempt printed, after redaction, also those that the Results lack.',
  }),
  cpuMs: z.number().optional().meta({
    description: 'Processor time in ms of the commands of the last attempt. Absent when it is known of none of them.',
  }),
  peakMemoryBytes: z
    .number()
    .optional()
    .meta({
      description:
        'Highest memory of their sandboxes in bytes, cached files included. Absent when it is known of none ' +
        'of them.',
    }),
});

const withResults = <Schema extends z.ZodType<Result>>(result: Schema) =>
  fieldsSchema.extend({
    setup: z.array(result).optional().meta({
      description: 'The Results of the `setup` scripts that ran, in their order. Absent for a task without `setup`.',
    }),
    results: z.array(result).meta({ description: 'The Results of the scripts that ran, in their order.' }),
    grade: result.optional().meta({ description: 'The Result of the grade. Absent when it did not run.' }),
  });

// The Results inside of a line come from this library, so they are not checked in full.
const anyResultSchema = z.custom<Result>((value) => typeof (value as Result | null)?.commandId === 'string');

/** One line of a results file. */
export const taskResultSchema: z.ZodType<TaskResult> = withResults(anyResultSchema);

/** A line of results as a server returns it: with the schema of its Results, for documents about it. */
export const taskResultReplySchema = withResults(resultSchema).meta({
  id: 'TaskResult',
  description: 'How a task ended: one line of a results file.',
});
