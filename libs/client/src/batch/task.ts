import {
  DEFAULTS,
  durationSchema,
  type Outcome,
  type Result,
  type SessionSpec,
  sandboxPathSchema,
  scriptSchema,
  sessionSpecSchema,
  type WireError,
} from '@shellfleet/protocol';
import { z } from 'zod';

/** One or several scripts that run in a separate session. */
export interface Task {
  /** Id of the task, 1 to 256 characters, unique in the batch. */
  id: string;
  /** Scripts that run in order, up to the first that does not succeed. At most 1,000. */
  script: string | string[];
  /** Spec of the session. Default: every default of a session. */
  spec?: SessionSpec;
  /** Sandbox path → path on this machine. Uploaded before the first script. */
  files?: Record<string, string>;
  /** Limit for each script in ms, 1 to 86,400,000. Default: `commandTimeoutMs` of the spec. */
  timeoutMs?: number;
}

export interface BatchOptions {
  /**
   * Number of tasks that run or wait for a host, 1 to 10,000. A number above that of all slots keeps every slot busy.
   * Default: 32.
   */
  concurrency?: number | undefined;
  /**
   * Name, 1 to 64 of `A-Z a-z 0-9 . _ -`. A later batch of this name continues an earlier one's tasks, and runs no
   * accepted script again. Use different names for different batches. Default: the name in `<resumeFrom>.batch`, else a
   * new name.
   */
  name?: string | undefined;
  /**
   * File that gets each result as a line of JSON, before the caller gets it. It must not exist, unless it is also
   * `resumeFrom`. `<out>.batch` holds the name of the batch. Default: none.
   */
  out?: string | undefined;
  /** Whether the file `out` may exist, and is then replaced. Default: false. */
  overwrite?: boolean | undefined;
  /**
   * The `out` of an earlier run. Tasks with the outcome `error`, `lost` or `cancellation` run again; all others are
   * skipped, failures and timeouts included. Default: none.
   */
  resumeFrom?: string | undefined;
  /**
   * How often a task runs again from its beginning, 0 to 100. `infra`: after `lost`, and after an `error` that is
   * retryable or that ended the session. `command`: after `failure`, `timeout` or `blocked`. Denials, cancellations and
   * errors that would recur (invalid input, a missing image) are not retried. Default: 0.
   */
  retries?: { infra?: number | undefined; command?: number | undefined } | undefined;
  /** How often each task is run, 1 to 10,000, in separate sessions with the ids `<id>#1`, `<id>#2`, …. Default: 1. */
  repeats?: number | undefined;
  /**
   * Spec that the tasks share. Fields of a task's own spec replace it, and its variables, secrets, labels and limits
   * replace single ones. Default: none.
   */
  spec?: SessionSpec | undefined;
  /** Limit for scripts of tasks without `timeoutMs`, in ms, 1 to 86,400,000. Default: that of the spec. */
  timeoutMs?: number | undefined;
  /**
   * Time within which each script must start, or its task ends as `timeout`.
   * @default none
   */
  startDeadlineMs?: number | undefined;
  /**
   * Signal whose abort ends the batch: no further task starts, and running tasks are closed and end as cancellations.
   */
  signal?: AbortSignal | undefined;
}

export interface TaskResult {
  /** Id of the task. */
  id: string;
  /** Session of the last attempt, or empty. */
  sessionId: string;
  /** The outcome of the first script that did not succeed, else `success`. */
  outcome: Outcome;
  /** The results of the scripts that ran, in their order. */
  results: Result[];
  /** Present when a script could not be run. */
  error?: WireError;
  /** Attempts, over all drivers of a resumed batch. */
  attempts: number;
  /** Duration in ms of all attempts together. */
  durationMs: number;
}

export type BatchTotals = {
  /** Tasks that were read so far. */
  tasks: number;
  /** Tasks that were not run, because `resumeFrom` has their results. */
  skipped: number;
} & { [outcome in Outcome]: number };

export const taskSchema = z.strictObject({
  id: z.string('must be a string').min(1, 'must not be empty').max(256, 'must be at most 256 characters'),
  script: z.union(
    [scriptSchema, z.array(scriptSchema).min(1, 'must hold a script').max(1_000)],
    'must be a script or a list of scripts',
  ),
  spec: sessionSpecSchema.optional(),
  files: z.record(sandboxPathSchema, z.string().min(1)).optional(),
  timeoutMs: durationSchema().optional(),
});

const count = (least: number, most: number) =>
  z
    .number('must be a number')
    .int('must be a whole number')
    .min(least, `must be ${least} to ${most}`)
    .max(most, `must be ${least} to ${most}`);

const path = z.string('must be a path').min(1, 'must be a path');

export const batchOptionsSchema = z.strictObject({
  concurrency: count(1, 10_000).default(DEFAULTS.batch.concurrency),
  name: z
    .string('must be a string')
    .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ -')
    .optional(),
  out: path.optional(),
  overwrite: z.boolean('must be true or false').default(false),
  resumeFrom: path.optional(),
  repeats: count(1, 10_000).default(1),
  // A task's spec is checked together with this spec, after both are merged.
  spec: z.custom<SessionSpec>((value) => typeof value === 'object' && value !== null, 'must be a spec').optional(),
  timeoutMs: durationSchema().optional(),
  startDeadlineMs: durationSchema().optional(),
  retries: z
    .strictObject({ infra: count(0, 100).default(0), command: count(0, 100).default(0) })
    .default({ infra: 0, command: 0 }),
});
