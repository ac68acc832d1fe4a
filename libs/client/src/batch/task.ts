import {
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
  concurrency?: number;
  /** A file with the results of an earlier run, one JSON object per line. Tasks whose outcome in it is `error`, `lost` or `cancellation` run again; all others are skipped, failures and timeouts included. */
  resumeFrom?: string;
  /** How often a task runs again from its beginning, 0 to 100: `infra` after `error` or `lost`, `command` after `failure`, `timeout` or `blocked`. Denials, cancellations and invalid input are not retried. Default: 0. */
  retries?: { infra?: number; command?: number };
  /** When it aborts, no further task starts, and the running ones are closed and end as cancellations. */
  signal?: AbortSignal;
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
  /** 1 without retries */
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

export const batchOptionsSchema = z.strictObject({
  concurrency: count(1, 10_000).default(32),
  resumeFrom: z.string('must be a path').min(1, 'must be a path').optional(),
  retries: z
    .strictObject({ infra: count(0, 100).default(0), command: count(0, 100).default(0) })
    .default({ infra: 0, command: 0 }),
});
