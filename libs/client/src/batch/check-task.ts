import { parseOrThrow } from '@shellfleet/protocol';
import { expandTask } from './expand-task.ts';
import { type BatchOptions, type Task, taskSchema } from './task.ts';

/** Checks a task as a batch with these options does. Throws COMMAND_INVALID with a message that begins with `what`. */
export function checkTask(task: unknown, { spec, timeoutMs }: BatchOptions = {}, what = 'The task'): void {
  const [whole] = expandTask(task as Task, 1, spec, timeoutMs);
  parseOrThrow(taskSchema, whole, 'COMMAND_INVALID', what);
}
