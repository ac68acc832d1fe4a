import { z } from 'zod';
import { readEachLine } from '../batch/results-file.ts';
import type { TaskResult } from '../batch/task-result.ts';

const time = z.string().refine((text) => !Number.isNaN(Date.parse(text)));

const commandSchema = z.object({
  sessionId: z.string(),
  hostId: z.string().nullable(),
  output: z.string(),
  timings: z.object({ queuedMs: z.number(), startMs: z.number(), runMs: z.number() }),
  receipt: z
    .object({
      startedAt: time.optional(),
      storedAt: time,
      parts: z.array(z.object({ step: z.string(), ms: z.number() })),
    })
    .optional(),
});

/** What a report reads of a result. Another program, or another version, may have written the file. */
const readSchema = z.object({
  startedAt: time,
  setup: z.array(commandSchema).optional(),
  results: z.array(commandSchema),
  grade: commandSchema.optional(),
});

/** Calls `add` with each result of a file. Returns the number of lines that have not what a report reads. */
export async function readResults(path: string, add: (result: TaskResult) => void): Promise<number> {
  let skipped = 0;
  for await (const result of readEachLine(path)) {
    if (result !== undefined && readSchema.safeParse(result).success) add(result);
    else skipped++;
  }
  return skipped;
}
