import { parseOrThrow, ShellfleetError } from '@shellfleet/protocol';
import type { BatchOptions } from './batch-options.ts';
import { InputCheck } from './check-inputs.ts';
import { withCommon } from './expand-task.ts';
import { IdSet } from './id-set.ts';
import { repeatedTaskSchema, type Task } from './task.ts';

/** Checks a task as a batch with these options does. Throws COMMAND_INVALID with a message that begins with `what`. */
export function checkTask(
  task: unknown,
  { spec, timeoutMs, repeats = 1 }: BatchOptions = {},
  what = 'The task',
): asserts task is Task {
  const whole = withCommon(task as Task, { spec, timeoutMs });
  parseOrThrow(repeatedTaskSchema(repeats), whole, 'COMMAND_INVALID', what);
}

/** A task of a list, which may not be valid, with its place there. */
export interface PlacedTask {
  /** The task, as it was read. */
  task: unknown;
  /** Number of its line, or of the task, from 1. */
  at: number;
}

/** A list of tasks that can be read several times. */
export interface TaskList {
  /** Name of the list in messages, such as the path of its file. */
  name: string;
  /** Meaning of the numbers. */
  counts: 'lines' | 'tasks';
  /** Function that reads the list from its beginning. */
  read: () => AsyncIterable<PlacedTask>;
}

/**
 * Checks a whole list of tasks, so that nothing runs if one of them is invalid, and returns their number. Throws
 * COMMAND_INVALID, which names line and field, for the first invalid task, the first id that occurs twice and the first
 * local path of `files` that cannot be read.
 */
export async function checkTasks(list: TaskList, options: BatchOptions = {}): Promise<number> {
  const ids = new IdSet();
  const inputs = new InputCheck(options.repeats ?? 1);
  for await (const { task, at } of list.read()) {
    const what = `Nothing was run: ${placeIn(list, at)}`;
    checkTask(task, options, what);
    if (!ids.add(task.id)) throw await duplicate(list, task.id, at);
    await inputs.check(task, what);
  }
  return ids.size;
}

/** Returns a place in a list as it stands in a message: `tasks.jsonl:3`. */
function placeIn({ name, counts }: TaskList, at: number): string {
  return counts === 'lines' ? `${name}:${at}` : `${name}, task ${at},`;
}

async function duplicate(list: TaskList, id: string, again: number): Promise<ShellfleetError> {
  let first = again;
  for await (const { task, at } of list.read()) {
    if ((task as Task).id !== id) continue;
    first = at;
    break;
  }
  const what = list.counts === 'lines' ? 'Lines' : 'Tasks';
  return new ShellfleetError(
    'COMMAND_INVALID',
    `${what} ${first} and ${again} of ${list.name} have the same task id, ${JSON.stringify(id)}. Give each task its own id. Nothing was run.`,
    { id, lines: [first, again] },
  );
}
