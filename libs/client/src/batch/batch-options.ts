import { DEFAULTS, durationSchema, LIMITS, type Outcome, type SessionSpec } from '@shellfleet/protocol';
import { z } from 'zod';

export interface BatchOptions {
  /**
   * Number of tasks that run or wait for a host, 1 to 10,000. A number above that of all slots keeps every slot busy.
   * @default 32
   */
  concurrency?: number | undefined;
  /**
   * Name, 1 to 64 of `A-Z a-z 0-9 . _ -`. A later batch of this name continues an earlier one's tasks, and runs no
   * accepted script again, unless the task has its line in another `out`. Use different names for different batches.
   * @default the name in `<resumeFrom>.batch`, else a new name
   */
  name?: string | undefined;
  /**
   * File that gets each result as a line of JSON, before the caller gets it. It must not exist, unless it is also
   * `resumeFrom`. `<out>.batch` holds the name of the batch and what ran it. The fleet forgets the sessions of a task
   * once its line is on the disk.
   * @default none
   */
  out?: string | undefined;
  /**
   * Whether the file `out` may exist, and is then replaced.
   * @default false
   */
  overwrite?: boolean | undefined;
  /**
   * The `out` of an earlier run. Tasks with the outcome `error`, `lost` or `cancellation` run again; all others are
   * skipped, failures and timeouts included.
   * @default none
   */
  resumeFrom?: string | undefined;
  /**
   * With `resumeFrom`: only tasks that have a result there and did not pass run again, whatever their outcome.
   * @default none
   */
  only?: 'failed' | undefined;
  /**
   * How often a task runs again from its beginning, 0 to 100. `infra`: after `lost`, and after an `error` that is
   * retryable or that ended the session. `command`: after `failure`, `timeout` or `blocked`, and when its grade does
   * not pass. Denials, cancellations and errors that would recur (invalid input, a missing image) are not retried.
   * @default `infra` 2, `command` 0
   */
  retries?: { infra?: number | undefined; command?: number | undefined } | undefined;
  /**
   * How often each task is run, 1 to 10,000, in separate sessions with the ids `<id>#1`, `<id>#2`, ….
   * @default 1
   */
  repeats?: number | undefined;
  /**
   * Spec that the tasks share. Fields of a task's own spec replace it, and its variables, secrets, labels and limits
   * replace single ones.
   * @default none
   */
  spec?: SessionSpec | undefined;
  /**
   * Limit for scripts of tasks without `timeoutMs`, in ms, 1 to 86,400,000.
   * @default that of the spec
   */
  timeoutMs?: number | undefined;
  /**
   * Time within which each script must start, or its task ends as `timeout`.
   * @default none
   */
  startDeadlineMs?: number | undefined;
  /**
   * `deadlineMs` of tasks without one. Such a task ends as `timeout`.
   * @default none
   */
  taskDeadlineMs?: number | undefined;
  /**
   * Limit for the whole batch in ms, at most a week: then no further task starts, and running tasks end as
   * cancellations.
   * @default none
   */
  deadlineMs?: number | undefined;
  /**
   * Whether the batch ends when a task does not pass: no further task starts, and running tasks end as cancellations.
   * @default false
   */
  stopOnFailure?: boolean | undefined;
  /**
   * Number of tasks, for `progress`, when the tasks are not an array.
   * @default unknown
   */
  count?: number | undefined;
  /**
   * The file that the tasks come from, as `<out>.batch` records it.
   * @default none
   */
  source?: { file: string; digest: string } | undefined;
  /**
   * Signal whose abort ends the batch: no further task starts, and running tasks are closed and end as cancellations.
   */
  signal?: AbortSignal | undefined;
}

export type BatchTotals = {
  /** Tasks that were read so far. */
  tasks: number;
  /** Tasks that were not run, because `resumeFrom` has their results, or because of `only`. */
  skipped: number;
  /** Tasks that passed. */
  passed: number;
  /** Tasks that ended by themselves and did not pass. */
  failed: number;
  /** Tasks that the fleet failed to run, or whose end is not known. */
  infrastructure: number;
  /** Tasks that were cancelled. */
  cancelled: number;
} & { [outcome in Outcome]: number };

const number = (least: number, most: number) =>
  z
    .number('must be a number')
    .int('must be a whole number')
    .min(least, `must be ${least} to ${most}`)
    .max(most, `must be ${least} to ${most}`);

const path = z.string('must be a path').min(1, 'must be a path');
const isTrue = z.boolean('must be true or false').default(false);

const MOST_TASKS = 1_000_000_000;

export const batchOptionsSchema = z
  .strictObject({
    concurrency: number(1, 10_000)
      .default(DEFAULTS.batch.concurrency)
      .meta({
        description:
          'Number of tasks that run or wait for a host, 1 to 10,000. A number above that of all slots keeps ' +
          'every slot busy.',
        flag: 'tasks that run or wait at once',
      }),
    name: z
      .string('must be a string')
      .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ -')
      .optional()
      .meta({
        description:
          "Name, 1 to 64 of `A-Z a-z 0-9 . _ -`. A later batch of this name continues an earlier one's tasks, " +
          'and runs no accepted script again, unless the task has its line in another `out`. Use different ' +
          'names for different batches.',
        otherwise: 'the name in `<resumeFrom>.batch`, else a new name',
        flag: 'of the batch, by which --resume finds it; kept in <out>.batch',
      }),
    out: path.optional().meta({
      description:
        'File that gets each result as a line of JSON, before the caller gets it. It must not exist, unless ' +
        'it is also `resumeFrom`. `<out>.batch` holds the name of the batch and what ran it. The fleet ' +
        'forgets the sessions of a task once its line is on the disk.',
      otherwise: 'none',
      flag: 'results, one JSON object a line',
    }),
    overwrite: isTrue.meta({
      description: 'Whether the file `out` may exist, and is then replaced.',
      flag: 'replace --out when it exists',
    }),
    resumeFrom: path.optional().meta({
      description:
        'The `out` of an earlier run. Tasks with the outcome `error`, `lost` or `cancellation` run again; ' +
        'all others are skipped, failures and timeouts included.',
      otherwise: 'none',
      flag: 'go on with the batch that wrote --out, also when it was killed',
    }),
    only: z
      .literal('failed', "must be 'failed'")
      .optional()
      .meta({
        description:
          'With `resumeFrom`: only tasks that have a result there and did not pass run again, whatever their ' +
          'outcome.',
        otherwise: 'none',
        flag: 'with --resume: run again only what did not pass',
      }),
    repeats: number(1, 10_000).default(1).meta({
      description: 'How often each task is run, 1 to 10,000, in separate sessions with the ids `<id>#1`, `<id>#2`, ….',
      flag: 'run each task so often, each time in a session of its own, as id#1, id#2, …',
    }),
    // A task's spec is checked together with this spec, after both are merged.
    spec: z
      .custom<SessionSpec>((value) => typeof value === 'object' && value !== null, 'must be a spec')
      .optional()
      .meta({
        description:
          "Spec that the tasks share. Fields of a task's own spec replace it, and its variables, secrets, " +
          'labels and limits replace single ones.',
        otherwise: 'none',
      }),
    timeoutMs: durationSchema().optional().meta({
      description: 'Limit for scripts of tasks without `timeoutMs`, in ms, 1 to 86,400,000.',
      otherwise: 'that of the spec',
      flag: 'time limit of each script: 30s, 5m',
    }),
    startDeadlineMs: durationSchema().optional().meta({
      description: 'Time within which each script must start, or its task ends as `timeout`.',
      otherwise: 'none',
      flag: 'time within which each script must start: 30s, 10m',
    }),
    taskDeadlineMs: durationSchema().optional().meta({
      description: '`deadlineMs` of tasks without one. Such a task ends as `timeout`.',
      otherwise: 'none',
      flag: 'time for each task as a whole, with all attempts and all waiting',
    }),
    deadlineMs: durationSchema(1, 7 * LIMITS.timeoutMs)
      .optional()
      .meta({
        description:
          'Limit for the whole batch in ms, at most a week: then no further task starts, and running tasks ' +
          'end as cancellations.',
        otherwise: 'none',
        flag: 'time for the batch as a whole; --resume continues it',
      }),
    stopOnFailure: isTrue.meta({
      description:
        'Whether the batch ends when a task does not pass: no further task starts, and running tasks end as ' +
        'cancellations.',
      flag: 'end the batch when a task does not pass',
    }),
    count: number(0, MOST_TASKS)
      .optional()
      .meta({ description: 'Number of tasks, for `progress`, when the tasks are not an array.', otherwise: 'unknown' }),
    source: z
      .strictObject({ file: path, digest: z.string() })
      .optional()
      .meta({ description: 'The file that the tasks come from, as `<out>.batch` records it.', otherwise: 'none' }),
    retries: z
      .strictObject({
        infra: number(0, 100).default(DEFAULTS.batchRetries.infra),
        command: number(0, 100).default(DEFAULTS.batchRetries.command),
      })
      .default(DEFAULTS.batchRetries)
      .meta({
        description:
          'How often a task runs again from its beginning, 0 to 100. `infra`: after `lost`, and after an ' +
          '`error` that is retryable or that ended the session. `command`: after `failure`, `timeout` or ' +
          '`blocked`, and when its grade does not pass. Denials, cancellations and errors that would recur ' +
          '(invalid input, a missing image) are not retried.',
        otherwise: '`infra` 2, `command` 0',
        flag: 'how often a task runs again: infra=2,command=1',
      }),
  })
  .refine(({ only, resumeFrom }) => only === undefined || resumeFrom !== undefined, {
    path: ['only'],
    message: 'needs resumeFrom, which has the results of the earlier run',
  })
  .meta({ id: 'BatchOptions' });
export type ParsedBatchOptions = z.infer<typeof batchOptionsSchema>;
