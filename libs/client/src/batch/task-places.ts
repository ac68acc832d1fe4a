import type { Task } from './task.ts';
import { inputFiles, type OutputPlace, outputPlaces } from './task-outputs.ts';

/** Where the files of the tasks of a batch are on the machine that drives it. */
export interface TaskPlaces {
  /** Returns the names of the files of one run of a task, by their paths in the sandbox. */
  filesOf(task: Pick<Task, 'id' | 'files'>, repeat: number): Record<string, string>;
  /** Returns the path on this machine of a file that `filesOf` has named. */
  fileOf(name: string): string | Promise<string>;
  /** Returns where the outputs of one run of a task are fetched to. */
  outputsOf(task: Pick<Task, 'id' | 'outputs'>, repeat: number): readonly OutputPlace[];
}

/** The paths that the tasks name, on this machine. */
export const NAMED_PLACES: TaskPlaces = {
  filesOf: ({ id, files = {} }, repeat) => inputFiles(files, id, repeat),
  fileOf: (name) => name,
  outputsOf: ({ id, outputs = {} }, repeat) => outputPlaces(outputs, id, repeat),
};
