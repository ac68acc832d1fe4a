import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { OUTCOMES, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';

const lineSchema = z.object({ id: z.string(), outcome: z.enum(OUTCOMES) });
/** Outcomes that the task did not cause itself: such a task runs again. */
const RUN_AGAIN: readonly string[] = ['error', 'lost', 'cancellation'];

/** Ids of the tasks that need not run again, from a file of task results. Lines that are not valid, such as a partly written last one, are skipped. */
export async function readFinishedTasks(path: string): Promise<Set<string>> {
  const finished = new Set<string>();
  try {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
      const parsed = lineSchema.safeParse(tryJson(line));
      if (parsed.success && !RUN_AGAIN.includes(parsed.data.outcome)) finished.add(parsed.data.id);
    }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return finished;
    throw new ShellfleetError('FILE_DENIED', `${path} cannot be read: ${message}.`, { path }, { cause });
  }
  return finished;
}
