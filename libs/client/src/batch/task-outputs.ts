import { createHash } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ensureShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import { isOfTheDisk } from '../files/disk-error.ts';
import type { Files, TransferOptions, TransferProgress } from '../files/files.ts';
import { toLocalError } from '../files/local-error.ts';
import { isOfInfrastructure } from './retry-kind.ts';
import type { TaskOutput } from './task-result.ts';

/** Where an output of one run of a task goes on this machine. */
export interface OutputPlace {
  /** Path in the sandbox. */
  path: string;
  /** Path on this machine. */
  local: string;
  /** Whether only this run of the task writes there, so that what is there may be replaced. */
  isOwn: boolean;
  /** Most that is fetched. An output that is larger has the error FILE_TOO_LARGE. Default: no limit. */
  most?: { bytes: number; files: number } | undefined;
  /** Function that gets the error of an output that could not be fetched. */
  onError?: ((error: unknown) => void) | undefined;
}

/** Returns the places of a task's `outputs`, for one of its runs. */
export function outputPlaces(outputs: Record<string, string>, task: string, repeat: number): OutputPlace[] {
  return Object.entries(outputs).map(([path, template]) => ({
    path,
    local: toLocalPath(template, task, repeat),
    isOwn: resolve(template).includes('{id}'),
  }));
}

/** Returns the `files` of a task with their local paths, for one of its runs. */
export function inputFiles(files: Record<string, string>, task: string, repeat: number): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).map(([path, template]) => [path, toLocalPath(template, task, repeat)]),
  );
}

function toLocalPath(template: string, task: string, repeat: number): string {
  // Resolved first, because `logs/{id}/..` is the directory of all tasks.
  return resolve(template).replaceAll('{id}', toFileName(task)).replaceAll('{repeat}', String(repeat));
}

/** Longest name of a file for an id, so that a name fits into the file systems of most machines. */
const LONGEST_NAME = 200;

/** Returns a file name for an id. Different ids have different names, and none has a meaning of its own, as `..`. */
export function toFileName(id: string): string {
  const name = id.replaceAll(/[^A-Za-z0-9._-]|^\.+$/gu, toPercents);
  if (name.length <= LONGEST_NAME) return name;
  return `${name.slice(0, LONGEST_NAME - 17)}-${createHash('sha256').update(id).digest('hex').slice(0, 16)}`;
}

const toPercents = (text: string) => Buffer.from(text).toString('hex').toUpperCase().replaceAll(/../g, '%$&');

/**
 * Fetches the outputs of a task. An output that cannot be fetched has its error instead. Rejects when the sandbox is
 * gone, the fleet or the disk of this machine fails, and with the signal's reason.
 */
export async function fetchOutputs(
  files: Files,
  places: readonly OutputPlace[],
  signal: AbortSignal,
): Promise<Record<string, TaskOutput>> {
  const fetched: Record<string, TaskOutput> = {};
  for (const place of places) {
    try {
      await fetchOutput(files, place, signal).catch((cause: unknown) => {
        throw toLocalError(place.local, cause);
      });
      fetched[place.path] = { path: place.local };
    } catch (cause) {
      signal.throwIfAborted();
      place.onError?.(cause);
      const error = ensureShellfleetError(cause).toJSON();
      if (isOfInfrastructure(error) || isOfTheDisk(cause)) throw cause;
      fetched[place.path] = { error };
    }
  }
  return fetched;
}

/** Fetches one output. An own place has either everything or nothing of it, and nothing of an earlier attempt. */
async function fetchOutput(files: Files, place: OutputPlace, signal: AbortSignal): Promise<void> {
  const { path, local, isOwn } = place;
  await mkdir(dirname(local), { recursive: true });
  const options = toTransfer(place, signal);
  if (!isOwn) return files.download(path, local, options);
  const part = `${local}.shellfleet-part`;
  for (const stale of [local, part]) await rm(stale, { recursive: true, force: true });
  await files.download(path, part, options);
  await rename(part, local);
}

/** Returns the options of a transfer that ends when it exceeds the limit of the place. */
function toTransfer({ path, most }: OutputPlace, signal: AbortSignal): TransferOptions {
  if (most === undefined) return { signal };
  const ends = new AbortController();
  const onProgress = ({ bytes, files }: TransferProgress) => {
    if (bytes > most.bytes || files > most.files) ends.abort(tooLarge(path, most));
  };
  return { signal: AbortSignal.any([signal, ends.signal]), onProgress };
}

function tooLarge(path: string, { bytes, files }: { bytes: number; files: number }): ShellfleetError {
  const message = `${path} was not fetched: it has more than ${bytes} bytes or ${files} files.`;
  return new ShellfleetError('FILE_TOO_LARGE', message, { path });
}
