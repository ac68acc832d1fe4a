import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readFile, rename, stat } from 'node:fs/promises';
import { OUTCOMES, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import type { TaskResult } from './task.ts';

// FILE-1. A results file has one line per task, a TaskResult. Lines of tasks that run again are removed first.
// FILE-2. `<file>.batch` holds the batch's name, and the attempts of tasks whose lines were removed. It is written
//     before the first task starts and before a line is removed.

const lineSchema = z.object({ id: z.string(), outcome: z.enum(OUTCOMES), attempts: z.number().default(1) });
const besideSchema = z.object({ name: z.string(), attempts: z.record(z.string(), z.number()).default({}) });

/** Outcomes that the task itself did not cause. A task with such an outcome runs again. */
export const RUN_AGAIN: readonly string[] = ['error', 'lost', 'cancellation'];

export interface Earlier {
  /** Name of the batch. Undefined without a `.batch` file. */
  name: string | undefined;
  /** Ids of the tasks that need not run again. */
  finished: Set<string>;
  /** For the other tasks: id → number of attempts that have ended. */
  attempts: Map<string, number>;
}

/**
 * Reads the results file of an earlier run. A missing file counts as empty. Invalid lines are skipped, such as a last
 * line that was written in part.
 */
export async function readEarlier(path: string): Promise<Earlier> {
  const beside = besideSchema.safeParse(tryJson(await readFile(besideOf(path), 'utf8').catch(() => '')));
  const attempts = new Map(Object.entries(beside.data?.attempts ?? {}));
  const finished = new Set<string>();
  await eachLine(path, (line) => {
    const parsed = lineSchema.safeParse(tryJson(line));
    if (!parsed.success) return;
    const { id, outcome } = parsed.data;
    if (RUN_AGAIN.includes(outcome)) attempts.set(id, Math.max(parsed.data.attempts, attempts.get(id) ?? 0));
    else finished.add(id);
  });
  for (const id of finished) attempts.delete(id);
  return { name: beside.data?.name, finished, attempts };
}

export class ResultsFile implements AsyncDisposable {
  readonly #path: string;
  readonly #file: FileHandle;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /**
   * Opens the file: `new`, emptied (`replace`), or with the lines of finished tasks (`resume`). Throws COMMAND_INVALID,
   * FILE_….
   */
  static async open(
    path: string,
    how: 'new' | 'replace' | 'resume',
    name: string,
    earlier: Pick<Earlier, 'attempts'>,
  ): Promise<ResultsFile> {
    try {
      const known = await stat(path).catch(() => undefined);
      if (known !== undefined && !known.isFile()) return new ResultsFile(path, await open(path, 'a'));
      if (known !== undefined && how === 'new') throw alreadyThere(path);
      const file = how === 'new' ? await open(path, 'wx') : undefined;
      const beside = JSON.stringify({ name, attempts: Object.fromEntries(earlier.attempts) });
      await replaceFile(besideOf(path), (next) => next.appendFile(`${beside}\n`));
      if (how === 'resume') await removeUnfinished(path);
      return new ResultsFile(path, file ?? (await open(path, how === 'resume' ? 'a' : 'w')));
    } catch (cause) {
      throw (cause as NodeJS.ErrnoException).code === 'EEXIST' ? alreadyThere(path) : toFileError(path, cause);
    }
  }

  /** Appends a line. Throws FILE_DENIED when this fails, such as on a full disk. */
  async append(result: TaskResult): Promise<void> {
    try {
      await this.#file.appendFile(`${JSON.stringify(result)}\n`);
    } catch (cause) {
      throw toFileError(this.#path, cause);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file.close();
  }
}

const besideOf = (path: string) => `${path}.batch`;

/** Keeps the last line of each finished task (FILE-1). */
async function removeUnfinished(path: string): Promise<void> {
  let lines = 0;
  const last = new Map<string, number>();
  await eachLine(path, (line) => {
    const parsed = lineSchema.safeParse(tryJson(line));
    if (parsed.success && !RUN_AGAIN.includes(parsed.data.outcome)) last.set(parsed.data.id, lines);
    lines++;
  });
  if (last.size === lines && (await endsWithNewline(path))) return;
  const kept = new Set(last.values());
  await replaceFile(path, async (file) => {
    let index = 0;
    await eachLine(path, async (line) => {
      if (kept.has(index++)) await file.appendFile(`${line}\n`);
    });
  });
}

async function endsWithNewline(path: string): Promise<boolean> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size === 0) return true;
  await using file = await open(path, 'r');
  const { buffer } = await file.read({ buffer: Buffer.alloc(1), position: size - 1 });
  return buffer.toString() === '\n';
}

async function eachLine(path: string, use: (line: string) => void | Promise<void>): Promise<void> {
  try {
    const input = createReadStream(path);
    const { createInterface } = await import('node:readline');
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) await use(line);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw toFileError(path, cause);
  }
}

/** Replaces the file in one step. Readers, and a writer that is killed, leave either the old file or the new one. */
async function replaceFile(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const next = `${path}.${randomUUID()}`;
  await using file = await open(next, 'wx');
  await write(file);
  await rename(next, path);
}

function alreadyThere(path: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `${path} exists and was not touched. Resume the batch that wrote it, name another file, or say that it may be replaced.`,
    { path },
  );
}

function toFileError(path: string, cause: unknown): unknown {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (cause instanceof ShellfleetError || code === undefined) return cause;
  const kind = code === 'ENOENT' ? 'FILE_NOT_FOUND' : 'FILE_DENIED';
  return new ShellfleetError(kind, `${path} on this machine cannot be used: ${message}.`, { path }, { cause });
}
