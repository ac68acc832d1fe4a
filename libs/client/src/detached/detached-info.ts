import { type BatchAccess, readBatch, type StoredBatch } from '@shellfleet/mailbox';
import { batchKeys, OUTCOMES, ShellfleetError, type WireError } from '@shellfleet/protocol';
import { z } from 'zod';
import { type BatchTotals, batchOptionsSchema } from '../batch/batch-options.ts';
import type { BatchProgress } from '../batch/batch-progress.ts';
import type { FleetView } from '../view.ts';

/** A batch that was submitted to the fleet. Times are by the clock of Redis, ISO 8601. */
export interface DetachedBatch {
  /** Name of the batch, unique in its tenant. */
  name: string;
  /**
   * State of the batch. `storing`: it is being submitted. `waiting`: no worker drives it. `running`: one drives it, or
   * did until it died.
   */
  state: 'storing' | 'waiting' | 'running' | 'ended';
  /** Name of the person who submitted it, as that process says. */
  submittedBy: string;
  /** Time at which it was submitted. */
  submittedAt: string;
  /** Time at which a worker first drove it. */
  startedAt?: string | undefined;
  /** Time of its end. */
  endedAt?: string | undefined;
  /** Number of tasks, without their repeats. */
  tasks: number;
  /** Number of results so far. */
  results: number;
  /** Bytes in Redis of tasks and files, and of outputs. */
  bytes: { tasks: number; outputs: number };
  /** Host whose worker drives it, or has driven it last. */
  hostId?: string | undefined;
  /** Reason of a cancellation that was asked for. */
  cancelled?: string | undefined;
  /** Cause that ended it before its last task. */
  stoppedBy?: 'batch-deadline' | 'failure' | 'signal' | undefined;
  /** Progress, as its worker said last. */
  progress?: BatchProgress | undefined;
  /** Totals of a batch that has ended. */
  totals?: BatchTotals | undefined;
  /** Error of a batch that failed as a whole. */
  error?: WireError | undefined;
}

const counts = { passed: z.number(), failed: z.number(), infrastructure: z.number(), cancelled: z.number() };
const progressSchema = z
  .object({
    ...counts,
    ...{ done: z.number(), skipped: z.number(), running: z.number(), perSecond: z.number() },
    ...{ queued: z.number().optional(), etaMs: z.number().optional() },
    slowest: z.object({ id: z.string(), forMs: z.number() }).optional(),
  })
  .transform(({ queued, etaMs, slowest, ...rest }): BatchProgress => ({ ...rest, queued, etaMs, slowest }))
  .optional()
  .catch(undefined);
const totalsSchema = z
  .object({
    ...counts,
    ...{ tasks: z.number(), skipped: z.number() },
    ...(Object.fromEntries(OUTCOMES.map((outcome) => [outcome, z.number()])) as Record<
      (typeof OUTCOMES)[number],
      z.ZodNumber
    >),
  })
  .optional()
  .catch(undefined);
const stoppedBySchema = z.enum(['batch-deadline', 'failure', 'signal']).optional().catch(undefined);

/** Returns what callers see of a stored batch. */
export function toDetachedBatch(stored: StoredBatch): DetachedBatch {
  const toTime = (ms: number) => new Date(ms).toISOString();
  const { startedAt, endedAt, host, cancel, failure } = stored;
  const progress = progressSchema.parse(stored.progress);
  const totals = totalsSchema.parse(stored.totals);
  const stoppedBy = stoppedBySchema.parse(stored.stoppedBy);
  return {
    ...{ name: stored.name, state: stored.state, submittedBy: stored.by, submittedAt: toTime(stored.createdAt) },
    ...(startedAt === undefined ? {} : { startedAt: toTime(startedAt) }),
    ...(endedAt === undefined ? {} : { endedAt: toTime(endedAt) }),
    ...{ tasks: stored.tasks, results: stored.lines, bytes: { tasks: stored.bytes, outputs: stored.outputBytes } },
    ...(host === undefined ? {} : { hostId: host }),
    ...(cancel === undefined ? {} : { cancelled: cancel }),
    ...(stoppedBy === undefined ? {} : { stoppedBy }),
    ...(progress === undefined ? {} : { progress }),
    ...(totals === undefined ? {} : { totals }),
    ...(failure === undefined ? {} : { error: failure }),
  };
}

/** Returns what the calls about a batch need. Throws COMMAND_INVALID for an invalid name. */
export function accessTo(view: FleetView, name: string): BatchAccess {
  if (!batchOptionsSchema.shape.name.safeParse(name).success || name === undefined)
    throw new ShellfleetError('COMMAND_INVALID', 'The name of a batch must be 1 to 64 of A-Z a-z 0-9 . _ -.');
  const { redis, sealer, fleet, namespace, tenant } = view;
  return { redis, sealer, fleet, keys: batchKeys(namespace, tenant, name) };
}

/** Reads a batch. Rejects with BATCH_NOT_FOUND for one that is not stored, or not yet as a whole. */
export async function findBatch(access: BatchAccess): Promise<StoredBatch> {
  const found = await findAnyBatch(access);
  if (found.state !== 'storing') return found;
  const { name, tenant } = access.keys;
  const message = `The batch ${name} is still being submitted to the tenant ${tenant}. Wait, or cancel it, also when its submitter has died.`;
  throw new ShellfleetError('BATCH_NOT_FOUND', message, { name, tenant });
}

/** Reads a batch, also one of which a part is stored. Rejects with BATCH_NOT_FOUND for one that is not stored. */
export async function findAnyBatch(access: BatchAccess): Promise<StoredBatch> {
  const found = await readBatch(access);
  if (found !== undefined) return found;
  const { name, tenant } = access.keys;
  throw new ShellfleetError('BATCH_NOT_FOUND', `The batch ${name} is not known in the tenant ${tenant}.`, {
    name,
    tenant,
  });
}
