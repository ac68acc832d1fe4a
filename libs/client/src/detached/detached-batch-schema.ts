import { OUTCOMES, wireErrorSchema } from '@shellfleet/protocol';
import { z } from 'zod';

const batchProgressSchema = z
  .object({
    done: z.number().meta({ description: 'Tasks that have ended: the sum of the next four.' }),
    passed: z.number().meta({ description: 'Tasks that passed.' }),
    failed: z.number().meta({ description: 'Tasks that ended by themselves and did not pass.' }),
    infrastructure: z.number().meta({ description: 'Tasks that the fleet failed to run, or whose end is not known.' }),
    cancelled: z.number().meta({ description: 'Tasks that were cancelled.' }),
    skipped: z
      .number()
      .meta({ description: 'Tasks that are not run again, because an earlier run has their results.' }),
    running: z.number().meta({ description: 'Tasks that have begun: they run, or wait for a host.' }),
    queued: z
      .number()
      .optional()
      .meta({ description: 'Tasks that have not begun. Undefined when the number of tasks is unknown.' }),
    perSecond: z.number().meta({ description: 'Tasks that ended per second, over the last minute.' }),
    etaMs: z.number().optional().meta({
      description: 'Estimated time to the end. Undefined without a number of tasks, and before any has ended.',
    }),
    slowest: z
      .object({ id: z.string(), forMs: z.number() })
      .optional()
      .meta({ description: 'The task that has run for the longest time. Undefined when none runs.' }),
  })
  .meta({
    id: 'BatchProgress',
    description: 'How far a batch is. All numbers are of this run, without what an earlier one has done.',
  });

const outcomes = OUTCOMES.map((outcome) => [
  outcome,
  z.number().meta({ description: `Tasks with the outcome ${outcome}.` }),
]);
const batchTotalsSchema = z
  .object({
    tasks: z.number().meta({ description: 'Tasks that were read so far.' }),
    skipped: z.number().meta({
      description: 'Tasks that were not run, because `resumeFrom` has their results, or because of `only`.',
    }),
    passed: z.number().meta({ description: 'Tasks that passed.' }),
    failed: z.number().meta({ description: 'Tasks that ended by themselves and did not pass.' }),
    infrastructure: z.number().meta({ description: 'Tasks that the fleet failed to run, or whose end is not known.' }),
    cancelled: z.number().meta({ description: 'Tasks that were cancelled.' }),
    ...(Object.fromEntries(outcomes) as Record<(typeof OUTCOMES)[number], z.ZodNumber>),
  })
  .meta({ id: 'BatchTotals' });

export const detachedBatchSchema = z
  .object({
    name: z.string().meta({ description: 'Name of the batch, unique in its tenant.' }),
    state: z.enum(['storing', 'waiting', 'running', 'ended']).meta({
      description:
        'State of the batch. `storing`: it is being submitted. `waiting`: no worker drives it. `running`: ' +
        'one drives it, or did until it died.',
    }),
    submittedBy: z.string().meta({ description: 'Name of the person who submitted it, as that process says.' }),
    submittedAt: z.string().meta({ description: 'Time at which it was submitted.' }),
    startedAt: z.string().optional().meta({ description: 'Time at which a worker first drove it.' }),
    endedAt: z.string().optional().meta({ description: 'Time of its end.' }),
    tasks: z.number().meta({ description: 'Number of tasks, without their repeats.' }),
    results: z.number().meta({ description: 'Number of results so far.' }),
    bytes: z
      .object({ tasks: z.number(), outputs: z.number() })
      .meta({ description: 'Bytes in Redis of tasks and files, and of outputs.' }),
    hostId: z.string().optional().meta({ description: 'Host whose worker drives it, or has driven it last.' }),
    cancelled: z.string().optional().meta({ description: 'Reason of a cancellation that was asked for.' }),
    stoppedBy: z
      .enum(['batch-deadline', 'failure', 'signal'])
      .optional()
      .meta({ description: 'Cause that ended it before its last task.' }),
    progress: batchProgressSchema.optional().meta({ description: 'Progress, as its worker said last.' }),
    totals: batchTotalsSchema.optional().meta({ description: 'Totals of a batch that has ended.' }),
    error: wireErrorSchema.optional().meta({ description: 'Error of a batch that failed as a whole.' }),
  })
  .meta({
    id: 'DetachedBatch',
    description: 'A batch that was submitted to the fleet. Times are by the clock of Redis, ISO 8601.',
  });
