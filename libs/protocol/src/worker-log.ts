import { z } from 'zod';

/** Position in the log of a worker process: the id of the process, and how many lines it had written. */
export const workerLogPositionSchema = z.object({ boot: z.string().max(64), line: z.number().int().min(0) });
export type WorkerLogPosition = z.infer<typeof workerLogPositionSchema>;

/** A page of the last lines that a worker logged. */
export const workerLogPageSchema = z.object({
  /** Position after the lines. */
  next: workerLogPositionSchema,
  lines: z.array(z.string()),
  /** Number of lines before these that were asked for, and that the worker does not keep any more. */
  missed: z.number(),
  /** Whether the worker has further lines now. */
  more: z.boolean(),
});
export type WorkerLogPage = z.infer<typeof workerLogPageSchema>;

export const workerLogRequestSchema = z.object({
  type: z.literal('worker-log'),
  /** Only lines after this position. The lines of another process are all after it. */
  after: workerLogPositionSchema.optional(),
  /** Only lines from this time on (ms). */
  since: z.number().optional(),
  /** Only the last lines. */
  tail: z.number().int().min(0).optional(),
  /** Whether the host waits a moment for a line if there is none. */
  waits: z.boolean().optional(),
});
export type WorkerLogRequest = z.infer<typeof workerLogRequestSchema>;
