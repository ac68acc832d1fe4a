import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { OUTCOMES, readLines, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import { toBatchFileError } from './batch-file-error.ts';
import { IdSet } from './id-set.ts';
import type { BatchManifest } from './manifest.ts';
import { readBatchManifest, writeManifest } from './manifest-file.ts';
import { replaceInOneStep } from './replace-file.ts';
import { idempotencyKeysOf } from './step-keys.ts';
import { type TaskResult, taskResultSchema } from './task-result.ts';

// FILE-1. A results file has one line per task, a TaskResult. Lines of tasks that run again are removed first.
// FILE-2. `<file>.batch`, the manifest, holds the batch's name, and the attempts of tasks whose lines were removed. It
//     is written before the first task starts and before a line is removed.
// FILE-3. Each line is written by one call, and ends with a line feed. So a reader of a growing file may use every line
//     that has one.

const commandSchema = z.object({ commandId: z.string() });
const lineSchema = z.object({
  id: z.string(),
  outcome: z.enum(OUTCOMES),
  attempts: z.number().default(1),
  passed: z.boolean().default(false),
  sessionId: z.string().default(''),
  setup: z.array(commandSchema).default([]),
  results: z.array(commandSchema).default([]),
  grade: commandSchema.optional(),
});
type Line = z.infer<typeof lineSchema>;

/** Outcomes that the task itself did not cause. A task with such an outcome runs again. */
export const RUN_AGAIN: readonly string[] = ['error', 'lost', 'cancellation'];

/** Which tasks with a result run again: those with an outcome in RUN_AGAIN, or all that did not pass. */
export type RunsAgain = 'unfinished' | 'failed';

const runsAgain = ({ outcome, passed }: Line, which: RunsAgain) =>
  which === 'failed' ? !passed : RUN_AGAIN.includes(outcome);

/** What the line of a task tells about its sessions. */
export interface LineSessions {
  /** Session of the last attempt. */
  sessionId: string;
  attempts: number;
  commandIds: string[];
  idempotencyKeys: string[];
}

export interface Earlier {
  /** The manifest of the batch. Undefined without one. */
  manifest: BatchManifest | undefined;
  /** Which tasks with a result run again. */
  which: RunsAgain;
  /** Ids of the tasks that need not run again. */
  finished: IdSet;
  /** For the other tasks: id → number of attempts that have ended. */
  attempts: Map<string, number>;
  /** About the newest lines. Their driver may have ended before it discarded their sessions. */
  newest: LineSessions[];
}

/** Longest line that is read: a longer one could not be a string of JavaScript. */
const LONGEST_LINE_MIB = 511;

/** Returns what a batch begins with that no driver has begun. */
export function noEarlier(): Earlier {
  return { manifest: undefined, which: 'unfinished', finished: new IdSet(), attempts: new Map(), newest: [] };
}

/** Most of the newest lines whose sessions a driver that was killed may have left. */
const NEWEST = 512;

/** Adds what the line of a task tells about its sessions. */
export function addNewest(newest: LineSessions[], line: LineSessions): void {
  newest.push(line);
  if (newest.length === 2 * NEWEST) newest.splice(0, NEWEST);
}

/**
 * Reads the results file of an earlier run. A missing file counts as empty. Invalid lines are skipped, such as a last
 * line that was written in part.
 */
export async function readEarlier(path: string, which: RunsAgain = 'unfinished'): Promise<Earlier> {
  const manifest = await readBatchManifest(path);
  const attempts = new Map(Object.entries(manifest?.attempts ?? {}));
  const finished = new IdSet();
  const newest: Earlier['newest'] = [];
  await eachLine(path, (text) => {
    const line = parseLine(text);
    if (line === undefined) return;
    if (runsAgain(line, which)) attempts.set(line.id, Math.max(line.attempts, attempts.get(line.id) ?? 0));
    else finished.add(line.id);
    addNewest(newest, sessionsOf(line));
  });
  for (const id of attempts.keys()) if (finished.has(id)) attempts.delete(id);
  return { manifest, which, finished, attempts, newest };
}

export function sessionsOf({ sessionId, attempts, setup, results, grade }: Line): LineSessions {
  const all = [...setup, ...results, ...(grade === undefined ? [] : [grade])];
  return {
    ...{ sessionId, attempts, commandIds: all.map(({ commandId }) => commandId) },
    idempotencyKeys: idempotencyKeysOf(setup.length, results.length),
  };
}

/** Yields the results of a batch in the order of their ends. Lines that are not whole are skipped. */
export async function* readBatchResults(path: string): AsyncGenerator<TaskResult> {
  for await (const result of readEachLine(path)) if (result !== undefined) yield result;
}

/** Yields the result of each line, or undefined for a line that is not one. */
export async function* readEachLine(path: string): AsyncGenerator<TaskResult | undefined> {
  try {
    for await (const text of linesOf(path)) yield taskResultSchema.safeParse(tryJson(text)).data;
  } catch (cause) {
    throw toBatchFileError(path, cause);
  }
}

export class ResultsFile implements AsyncDisposable {
  readonly #path: string;
  readonly #file: FileHandle;
  /** False for a pipe or a device, which has no manifest and cannot be resumed. */
  readonly isRegular: boolean;

  private constructor(path: string, file: FileHandle, isRegular: boolean) {
    this.#path = path;
    this.#file = file;
    this.isRegular = isRegular;
  }

  /**
   * Opens the file: `new`, emptied (`replace`), or with the lines of tasks that do not run again (`resume`). Throws
   * COMMAND_INVALID, FILE_….
   */
  static async open(
    path: string,
    how: 'new' | 'replace' | 'resume',
    manifest: BatchManifest,
    which: RunsAgain = 'unfinished',
  ): Promise<ResultsFile> {
    try {
      const known = await stat(path).catch(() => undefined);
      if (known !== undefined && !known.isFile()) return new ResultsFile(path, await open(path, 'a'), false);
      if (known !== undefined && how === 'new') throw alreadyThere(path);
      const file = how === 'new' ? await open(path, 'wx') : undefined;
      await writeManifest(path, manifest);
      if (how === 'resume') await removeLines(path, which);
      return new ResultsFile(path, file ?? (await open(path, how === 'resume' ? 'a' : 'w')), true);
    } catch (cause) {
      throw (cause as NodeJS.ErrnoException).code === 'EEXIST' ? alreadyThere(path) : toBatchFileError(path, cause);
    }
  }

  /** Appends a line. Throws FILE_DENIED when this fails, such as on a full disk. */
  async append(result: TaskResult): Promise<void> {
    const line = Buffer.from(`${toLine(result)}\n`);
    try {
      for (let done = 0; done < line.byteLength; ) done += (await this.#file.write(line, done)).bytesWritten;
    } catch (cause) {
      throw toBatchFileError(this.#path, cause);
    }
  }

  /** Resolves when the lines so far are on the disk. Throws FILE_DENIED. */
  async sync(): Promise<void> {
    await this.#file.datasync().catch((cause: unknown) => {
      throw toBatchFileError(this.#path, cause);
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file.close();
  }
}

/** Returns the line of a result, without a line feed. */
export function toLine(result: TaskResult): string {
  // A program that reads the file with the readline of Node.js 24 would end a line at these two characters too.
  return JSON.stringify(result).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}

/** Keeps the last line of each task that does not run again (FILE-1). */
async function removeLines(path: string, which: RunsAgain): Promise<void> {
  const { keeps, isClean } = await findLines(path, which);
  if (isClean && (await endsWithNewline(path))) return;
  await replaceInOneStep(path, async (file) => {
    let index = 0;
    await eachLine(path, async (text) => {
      if (keeps(text, index++)) await file.appendFile(`${text}\n`);
    });
  });
}

/** Tells which lines of the file are kept. A set of the ids is enough, unless an id occurs twice. */
async function findLines(path: string, which: RunsAgain) {
  const stays = (text: string): Line | undefined => {
    const line = parseLine(text);
    return line === undefined || runsAgain(line, which) ? undefined : line;
  };
  const ids = new IdSet();
  let isClean = true;
  let hasTwice = false;
  await eachLine(path, (text) => {
    const line = stays(text);
    if (line === undefined) isClean = false;
    else if (!ids.add(line.id)) hasTwice = true;
  });
  if (!hasTwice) return { isClean, keeps: (text: string) => stays(text) !== undefined };
  let index = 0;
  const last = new Map<string, number>();
  await eachLine(path, (text) => {
    const line = stays(text);
    if (line !== undefined) last.set(line.id, index);
    index++;
  });
  const kept = new Set(last.values());
  return { isClean: false, keeps: (_text: string, at: number) => kept.has(at) };
}

export const parseLine = (text: string): Line | undefined => lineSchema.safeParse(tryJson(text)).data;

async function endsWithNewline(path: string): Promise<boolean> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size === 0) return true;
  await using file = await open(path, 'r');
  const { buffer } = await file.read({ buffer: Buffer.alloc(1), position: size - 1 });
  return buffer.toString() === '\n';
}

async function* linesOf(path: string): AsyncGenerator<string> {
  for await (const line of readLines(createReadStream(path), path, LONGEST_LINE_MIB)) yield line.toString();
}

/** Calls a function with each line. A missing file counts as empty. Throws FILE_…. */
export async function eachLine(path: string, use: (line: string) => void | Promise<void>): Promise<void> {
  try {
    for await (const line of linesOf(path)) await use(line);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw toBatchFileError(path, cause);
  }
}

function alreadyThere(path: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `${path} exists and was not touched. Resume the batch that wrote it, name another file, or remove this one first.`,
    { path },
  );
}
