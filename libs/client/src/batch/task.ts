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

/** Work for a session of its own. */
export interface Task {
  /** The caller's name for it; once in a batch. */
  id: string;
  /** In order; stops at the first failure. */
  script: string | string[];
  spec?: SessionSpec;
  /** sandbox path → local path, uploaded before the first script */
  files?: Record<string, string>;
  timeoutMs?: number;
}

export interface BatchOptions {
  /** Tasks that are under way at once; more than there are slots lets the queue do its work. Default 32. */
  concurrency?: number;
  /** A file with the results of an earlier run, one JSON object a line: tasks that ended by themselves there are not run again. */
  resumeFrom?: string;
  /** How often a task is run again, from its beginning: after a failure of ours, or of its own. Default 0. */
  retries?: { infra?: number; command?: number };
  /** No task is started any more; those under way are closed, and end as cancellations. */
  signal?: AbortSignal;
}

export interface TaskResult {
  id: string;
  sessionId: string;
  /** Of the first script that did not succeed, else success. */
  outcome: Outcome;
  /** One for each script that ran. */
  results: Result[];
  /** Why no script, or no further one, could run. */
  error?: WireError;
  attempts: number;
  durationMs: number;
}

export type BatchTotals = { tasks: number; skipped: number } & { [outcome in Outcome]: number };

export const taskSchema = z.strictObject({
  id: z.string('must be a string').min(1, 'must not be empty').max(256, 'must be at most 256 characters'),
  script: z.union([scriptSchema, z.array(scriptSchema).min(1, 'must hold a script').max(1_000)]),
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
