import { parseOrThrow } from '@shellfleet/protocol';
import { expandTask } from './expand-task.ts';
import { type BatchOptions, type Task, taskSchema } from './task.ts';

/** Checks a task as a batch with these options does. `what` is the start of the message. Throws COMMAND_INVALID. */
export function checkTask(task: unknown, { spec, timeoutMs }: BatchOptions = {}, what = 'The task'): void {
  const [whole] = expandTask(task as Task, 1, spec, timeoutMs);
  parseOrThrow(taskSchema, whole, 'COMMAND_INVALID', what);
}
