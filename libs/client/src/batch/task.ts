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

/** One or several scripts that run in a session of their own. */
export interface Task {
  /** The caller's name for it, 1 to 256 characters, unique in the batch. */
  id: string;
  /** Run in order, up to the first one that does not succeed. At most 1,000 scripts. */
  script: string | string[];
  /** The spec of its session. Default: every default of a session. */
  spec?: SessionSpec;
  /** Sandbox path → path on this machine. Uploaded before the first script. */
  files?: Record<string, string>;
  /** Limit for each script in ms, 1 to 86,400,000. Default: `commandTimeoutMs` of the spec. */
  timeoutMs?: number;
}

export interface BatchOptions {
  /** Tasks that run or wait for a host at once, 1 to 10,000. More than there are slots keeps every slot busy. Default: 32. */
  concurrency?: number | undefined;
  /**
   * 1 to 64 of `A-Z a-z 0-9 . _ -`. A later batch of this name takes up the tasks that an earlier one had begun when its process ended: it
   * waits for what runs, and runs nothing again that was accepted. Two batches with other work need two names.
   * Default: that of the file `<resumeFrom>.batch`, else one that no other batch has.
   */
  name?: string | undefined;
  /**
   * A file to which each result is written as a line of JSON, before it is given to the caller. It must not exist, unless it is also `resumeFrom`.
   * `<out>.batch` beside it holds the name of the batch. Default: none.
   */
  out?: string | undefined;
  /** True lets `out` replace a file that exists. Default: false. */
  overwrite?: boolean | undefined;
  /** The `out` of an earlier run. Tasks whose outcome in it is `error`, `lost` or `cancellation` run again; all others are skipped, failures and timeouts included. Default: none. */
  resumeFrom?: string | undefined;
  /** How often a task runs again from its beginning, 0 to 100: `infra` after `lost`, and after an `error` that is retryable or that took the session with it; `command` after `failure`, `timeout` or `blocked`. Denials, cancellations, and errors that would come again (invalid input, an image that is not there) are not retried. Default: 0. */
  retries?: { infra?: number | undefined; command?: number | undefined } | undefined;
  /** How often each task is run, 1 to 10,000, each time in a session of its own. From 2 on the ids are `<id>#1`, `<id>#2`, …. Default: 1. */
  repeats?: number | undefined;
  /** The spec that tasks share. What a task's own `spec` gives replaces it: single variables, secrets, labels, limits and output bounds, other fields as a whole. Default: none. */
  spec?: SessionSpec | undefined;
  /** Limit for each script of a task that has no `timeoutMs` of its own, in ms, 1 to 86,400,000. Default: `commandTimeoutMs` of the spec. */
  timeoutMs?: number | undefined;
  /**
   * Time within which each script must start, or it is not run and its task ends as `timeout`.
   * @default none
   */
  startDeadlineMs?: number | undefined;
  /** When it aborts, no further task starts, and the running ones are closed and end as cancellations. */
  signal?: AbortSignal | undefined;
}

export interface TaskResult {
  /** Of the task. */
  id: string;
  /** The session in which it ran last. Empty when it had none. */
  sessionId: string;
  /** The outcome of the first script that did not succeed, else `success`. */
  outcome: Outcome;
  /** One per script that ran. */
  results: Result[];
  /** Present when a script could not be run. */
  error?: WireError;
  /** 1 without retries. Counted over all drivers of a batch that was resumed. */
  attempts: number;
  /** over all attempts */
  durationMs: number;
}

export type BatchTotals = {
  /** Read so far. */
  tasks: number;
  /** Not run, because `resumeFrom` has their results. */
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
  // Each task's own spec is checked when it is merged with this one.
  spec: z.custom<SessionSpec>((value) => typeof value === 'object' && value !== null, 'must be a spec').optional(),
  timeoutMs: durationSchema().optional(),
  startDeadlineMs: durationSchema().optional(),
  retries: z
    .strictObject({ infra: count(0, 100).default(0), command: count(0, 100).default(0) })
    .default({ infra: 0, command: 0 }),
});
