import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { type BatchOptions, checkTasks, type PlacedTask, ShellfleetError, type Task } from '@shellfleet/client';
import { readLines } from '@shellfleet/protocol';
import { isYaml, notUtf8, readYamlTasks } from './batch-yaml.ts';

/** Paths that mean stdin, which is then read by its descriptor: no path can open a stdin that is a socket. */
const STDIN = ['-', '/dev/stdin', '/dev/fd/0', '/proc/self/fd/0'];

/** Endings of programs, whose default export is a generator function of tasks, or their list. */
const PROGRAMS = ['.js', '.mjs', '.ts', '.mts'];

export interface TaskFile extends AsyncDisposable {
  /** Number of tasks, without their repeats. */
  count: number;
  /** `sha256:…` of the bytes of the file. */
  digest: string;
  tasks(): AsyncIterable<Task>;
}

type CheckOptions = Pick<BatchOptions, 'spec' | 'timeoutMs' | 'repeats'>;

/**
 * Checks a whole file of tasks before any of them runs: JSON lines, YAML, or a program with a generator function. The
 * file is then read again; what comes through a pipe is kept in a nameless file.
 */
export async function openTaskFile(
  path: string,
  options: CheckOptions,
  stdin: Readable = process.stdin,
): Promise<TaskFile> {
  const bytes = await openBytes(path, stdin);
  try {
    const read = await readerOf(path, bytes);
    const counts = PROGRAMS.includes(extname(path)) ? 'tasks' : 'lines';
    const count = await checkTasks({ name: path, counts, read }, options);
    if (count === 0) throw isEmpty(path);
    const digest = createHash('sha256');
    for await (const piece of bytes.open()) digest.update(piece);
    return {
      count,
      digest: `sha256:${digest.digest('hex')}`,
      tasks: () => onlyTasks(read()),
      [Symbol.asyncDispose]: bytes.close,
    };
  } catch (error) {
    await bytes.close();
    throw toFileError(path, error);
  }
}

interface Bytes {
  open(): Readable;
  close(): Promise<void>;
}

/** Returns the bytes of a file, which can be read several times. A pipe is copied first. */
async function openBytes(path: string, stdin: Readable): Promise<Bytes> {
  const isStdin = STDIN.includes(path);
  const isFile = !isStdin && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  if (isFile) return { open: () => createReadStream(path), close: async () => {} };
  try {
    return await copyOf(() => (isStdin ? stdin : createReadStream(path)));
  } catch (error) {
    throw toFileError(path, error);
  }
}

/** Copies a stream to a file without a name, so that the copy is gone when this process ends. */
async function copyOf(begin: () => Readable): Promise<Bytes> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-batch-'));
  const file = await open(join(directory, 'tasks'), 'wx+', 0o600);
  await rm(directory, { recursive: true });
  try {
    for await (const piece of begin()) await file.appendFile(piece);
  } catch (error) {
    await file.close();
    throw error;
  }
  return { open: () => file.createReadStream({ start: 0, autoClose: false }), close: () => file.close() };
}

/** Returns the function that reads the tasks, by the ending of the path. A pipe shows by its first line what it is. */
async function readerOf(path: string, bytes: Bytes): Promise<() => AsyncGenerator<PlacedTask>> {
  const ending = extname(path);
  if (PROGRAMS.includes(ending)) return readerOfProgram(path);
  if (!(await isYaml(path, STDIN.includes(path), bytes.open))) return () => readJsonTasks(path, bytes.open());
  return () => readYamlTasks(path, bytes.open());
}

/** Returns the function that runs a program's generator function, each time from its beginning. */
async function readerOfProgram(path: string): Promise<() => AsyncGenerator<PlacedTask>> {
  await readFile(path);
  const module: { default?: unknown } = await import(pathToFileURL(resolve(path)).href);
  const given = module.default;
  return async function* () {
    const list: unknown = typeof given === 'function' ? given() : given;
    if (!isIterable(list)) throw noList(path);
    let at = 0;
    for await (const task of list) yield { task, at: ++at };
  };
}

function isIterable(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  return typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value);
}

function noList(path: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `${path} has no tasks. Let its default export be a generator function of tasks, or a list of them.`,
    { path },
  );
}

function isEmpty(path: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `Nothing was run: ${path} has no task. Give one JSON object per line: {"id": "a", "script": "true"}.`,
    { path },
  );
}

async function* readJsonTasks(path: string, input: Readable): AsyncGenerator<PlacedTask> {
  let at = 0;
  for await (const line of readLines(input, path)) {
    at++;
    if (!isUtf8(line)) throw notUtf8(`${path}:${at}`);
    // Without the byte order mark, too, with which some editors begin a file.
    const text = line.toString().trim();
    if (text !== '') yield { task: parseTask(text, `${path}:${at}`), at };
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

/** Yields the tasks of a list that was checked. The batch checks each again, because a file may change meanwhile. */
async function* onlyTasks(read: AsyncIterable<PlacedTask>): AsyncGenerator<Task> {
  for await (const { task } of read) yield task as Task;
}

/** Adds the path to the error of a local file that cannot be read. */
function toFileError(path: string, cause: unknown): unknown {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (cause instanceof ShellfleetError || code === undefined) return cause;
  if (code === 'EISDIR')
    return new ShellfleetError(
      'FILE_IS_DIRECTORY',
      `${path} is a directory. Name a file of tasks.`,
      { path },
      { cause },
    );
  const kind = code === 'ENOENT' ? 'FILE_NOT_FOUND' : 'FILE_DENIED';
  return new ShellfleetError(kind, `${path} cannot be opened: ${message}.`, { path }, { cause });
}
