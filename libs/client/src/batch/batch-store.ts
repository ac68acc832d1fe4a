import type { TaskRepeat } from './expand-task.ts';
import type { Earlier } from './results-file.ts';
import type { TaskEnd } from './run-task.ts';
import type { TaskPlaces } from './task-places.ts';

/** Where a batch keeps the results of its tasks, for its readers and for a later driver that goes on. */
export interface BatchStore {
  /** Where the files of the tasks are while they run. */
  readonly places: TaskPlaces;
  /** Takes note of an error of an attempt at a task, before its session is closed. */
  readonly onError?: (error: unknown) => void;
  /** Reads what earlier drivers of the batch have kept. */
  readEarlier(): Promise<Earlier>;
  /** Opens the place for the results of this driver. `name` is that of the batch. */
  open(name: string, earlier: Earlier): Promise<BatchResults>;
}

/** The results of a running batch. */
export interface BatchResults extends AsyncDisposable {
  /** Keeps the result of a task that has ended. */
  append(given: TaskRepeat, end: TaskEnd): Promise<void>;
}
