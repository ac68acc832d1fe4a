import { createReadStream, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { type BatchOptions, checkTask, ShellfleetError, type Task } from '@shellfleet/client';

/** Paths that mean stdin, which is then read by its descriptor: no path can open a stdin that is a socket. */
const STDIN = ['-', '/dev/stdin', '/dev/fd/0', '/proc/self/fd/0'];

export interface TaskFile {
  count: number;
  tasks(): AsyncIterable<Task> | Iterable<Task>;
}

/**
 * Checks a whole file of tasks, one JSON object per line, before any of them runs. A file is then read again;
 * the tasks from a pipe are kept in memory.
 */
export async function openTaskFile(
  path: string,
  options: Pick<BatchOptions, 'spec' | 'timeoutMs'>,
  stdin: Readable = process.stdin,
): Promise<TaskFile> {
  const isFile = !STDIN.includes(path) && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const kept: Task[] = [];
  const lineOf = new Map<unknown, number>();
  let count = 0;
  for await (const { task, line } of readTasks(path, stdin)) {
    checkTask(task, options, `Nothing was run: ${path}:${line}`);
    const before = lineOf.get(task.id);
    if (before !== undefined) throw duplicate(path, task.id, before, line);
    lineOf.set(task.id, line);
    count++;
    if (!isFile) kept.push(task);
  }
  return { count, tasks: () => (isFile ? onlyTasks(path, stdin) : kept) };
}

async function* onlyTasks(path: string, stdin: Readable): AsyncGenerator<Task> {
  for await (const { task } of readTasks(path, stdin)) yield task;
}

async function* readTasks(path: string, stdin: Readable): AsyncGenerator<{ task: Task; line: number }> {
  const input = STDIN.includes(path) ? stdin : createReadStream(path);
  let line = 0;
  try {
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      line++;
      if (text.trim() !== '') yield { task: parseTask(text, `${path}:${line}`), line };
    }
  } catch (cause) {
    throw toFileError(path, cause);
  }
}

function parseTask(text: string, place: string): Task {
  try {
    const task: unknown = JSON.parse(text);
    if (typeof task === 'object' && task !== null && !Array.isArray(task)) return task as Task;
  } catch {
    // reported below
  }
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `${place} is not a task. Give one JSON object per line: {"id": "a", "script": "true"}.`,
    { place },
  );
}

function duplicate(path: string, id: unknown, before: number, line: number): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `Lines ${before} and ${line} of ${path} have the same task id, ${JSON.stringify(id)}. Give each task its own id. Nothing was run.`,
    { id, lines: [before, line] },
  );
}

/** Adds the path to the error of a local file that cannot be read. */
function toFileError(path: string, cause: unknown): unknown {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (cause instanceof ShellfleetError || code === undefined) return cause;
  const kind = code === 'ENOENT' ? 'FILE_NOT_FOUND' : 'FILE_DENIED';
  return new ShellfleetError(kind, `${path} cannot be opened: ${message}.`, { path }, { cause });
}
