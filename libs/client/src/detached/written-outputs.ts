import { type FileHandle, lstat, open } from 'node:fs/promises';
import { ShellfleetError, tryJson } from '@shellfleet/protocol';
import { toBatchFileError } from '../batch/batch-file-error.ts';
import { IdSet } from '../batch/id-set.ts';
import { eachLine } from '../batch/results-file.ts';
import { statIfThere } from '../files/local-file.ts';

// OUTPUTS-1. An attach replaces only what an attach to the same batch has written: a path is noted before anything is
//     written to it, and a path where something else is gets no note.

/** The paths to which attaches have written outputs: a file with one path as JSON per line. */
export class WrittenOutputs implements AsyncDisposable {
  readonly #path: string | undefined;
  readonly #known: IdSet;
  #file: FileHandle | undefined;

  private constructor(path: string | undefined, known: IdSet) {
    this.#path = path;
    this.#known = known;
  }

  /** Returns paths that are noted only while this process runs. */
  static inMemory(): WrittenOutputs {
    return new WrittenOutputs(undefined, new IdSet());
  }

  /** Opens the file: a new one, which is made with the first note, or the one of earlier attaches. */
  static async open(path: string, how: 'new' | 'resume'): Promise<WrittenOutputs> {
    if (how === 'new' && (await isThere(path))) throw alreadyThere(path);
    const known = new IdSet();
    await eachLine(path, (line) => {
      const noted = tryJson(line);
      if (typeof noted === 'string') known.add(noted);
    });
    return new WrittenOutputs(path, known);
  }

  /** Notes a path to which an output is written next. Rejects with FILE_DENIED when something else is there. */
  async claim(local: string): Promise<void> {
    if (this.#known.has(local)) return;
    const file = await this.#open();
    if (await isThere(local)) throw inTheWay(local);
    // The line feed before it ends a line that a killed process has written in part.
    await file?.appendFile(`\n${JSON.stringify(local)}\n`);
    this.#known.add(local);
  }

  async #open(): Promise<FileHandle | undefined> {
    const path = this.#path;
    if (path === undefined) return undefined;
    this.#file ??= await open(path, 'a').catch((cause: unknown) => {
      throw toBatchFileError(path, cause);
    });
    return this.#file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close();
  }
}

const isThere = async (path: string): Promise<boolean> => (await statIfThere(path, lstat)) !== undefined;

function inTheWay(path: string): ShellfleetError {
  return new ShellfleetError(
    'FILE_DENIED',
    `${path} exists, and no attach to this batch with this file of results has written it, so it was not replaced.`,
    { path },
  );
}

function alreadyThere(path: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `${path} exists, of another file of results, and was not touched. Remove it, or name another file.`,
    { path },
  );
}
