import type { TaskVerdict } from '../batch/task-result.ts';

// What the script of a report reads. It is embedded as JSON.

/** How a task differs from an earlier run: it passes less often, or more often. */
export type TaskDifference = 'newly failing' | 'newly passing';

/** A task in the table of a report. */
export interface ListedTask {
  id: string;
  /** Id of the task without its repeat. */
  task: string;
  verdict: TaskVerdict;
  hostId: string;
  /** Begin in ms after that of the first task. */
  startMs: number;
  durationMs: number;
  queueMs: number;
  runMs: number;
  cpuMs: number | null;
  peakMemoryBytes: number | null;
  outputBytes: number;
  score: number | null;
  attempts: number;
  /** Number of its cause, or -1 if it passed. */
  cause: number;
  /** How it differs from the earlier run. Absent without one. */
  change?: TaskDifference;
  /** Last lines, for a task that did not pass. Absent when the page would become too large. */
  text?: string;
}

/** Columns of a table, so that their names are in the page once. */
export type TaskColumns = { [name in keyof Required<ListedTask>]: (ListedTask[name] | null)[] };

export interface PageData {
  tasks: TaskColumns;
  /** Titles of the causes by their number. */
  causes: string[];
  /** The bars of the timeline, for the pointer: the place of a task in `tasks`, and where its bar is. */
  bars: { hostId: string; lane: number[]; from: number[]; to: number[]; task: number[] }[];
  lengthMs: number;
}

/** Returns the tasks as columns. */
export function toColumns(tasks: readonly ListedTask[]): TaskColumns {
  const column = <Name extends keyof ListedTask>(name: Name) => tasks.map((task) => task[name] ?? null);
  return {
    ...{ id: column('id'), task: column('task'), verdict: column('verdict'), hostId: column('hostId') },
    ...{ startMs: column('startMs'), durationMs: column('durationMs'), queueMs: column('queueMs') },
    ...{ runMs: column('runMs'), cpuMs: column('cpuMs'), peakMemoryBytes: column('peakMemoryBytes') },
    ...{ outputBytes: column('outputBytes'), score: column('score'), attempts: column('attempts') },
    ...{ cause: column('cause'), change: column('change'), text: column('text') },
  };
}

/** Returns the tasks of columns. */
export function fromColumns(columns: TaskColumns): ListedTask[] {
  const names = Object.keys(columns) as (keyof TaskColumns)[];
  return columns.id.map((_, row) =>
    Object.fromEntries(names.map((name) => [name, columns[name][row]])),
  ) as unknown as ListedTask[];
}
