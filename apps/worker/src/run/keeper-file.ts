// Translates file operations to those of the keeper, and the keeper's output to answers.
import { dirname } from 'node:path/posix';
import { type PackedEntry, parseFileRecords, parsePackedFiles } from '@shellfleet/keeper';
import { normalizePath } from '@shellfleet/policy';
import {
  type FileOperation,
  type FileRecord,
  type FileReply,
  onlyReads,
  ShellfleetError,
  type WrittenEntry,
} from '@shellfleet/protocol';
import type { FileFailure, KeeperFileOperation } from '../shell/keeper-operation.ts';
import type { FileCallEnd } from '../shell/shell-files.ts';

const STEP_TIMEOUT_MS = 60_000;
/** Time limit of a removal, which is one step for any number of files. */
const REMOVE_TIMEOUT_MS = 600_000;
/** Room for the content of small files in one answer. */
const PACK_ROOM_BYTES = 786_432;
/** Linux errnos when a file of `pack` is gone: ENOENT and ENOTDIR. */
const GONE_ERRNOS = new Set([2, 20]);
/** Linux errno when a file of `pack` does not fit into the answer: EFBIG. */
const NO_ROOM_ERRNO = 27;

export const fileTimeoutMs = ({ name }: FileOperation) => (name === 'remove' ? REMOVE_TIMEOUT_MS : STEP_TIMEOUT_MS);

/** Returns the operation as the keeper does it. With `exact`, the keeper follows no symbolic link on the path. */
export function toKeeperOperation(given: FileOperation, exact: boolean): KeeperFileOperation {
  return exact ? { ...toOperation(atRealPath(given)), exact } : toOperation(given);
}

function atRealPath(operation: FileOperation): FileOperation {
  const path = normalizePath(operation.path);
  return operation.name === 'rename' ? { ...operation, path, to: normalizePath(operation.to) } : { ...operation, path };
}

function toOperation(operation: FileOperation): KeeperFileOperation {
  switch (operation.name) {
    case 'read':
      return { type: 'read', path: operation.path, offset: operation.offset, length: operation.length };
    case 'write': {
      const first = operation.offset === 0;
      const path = `${dirname(operation.path).replace(/\/$/, '')}/.shellfleet-${operation.transfer}.part`;
      const data = Buffer.from(operation.data, 'base64');
      return {
        type: 'write',
        path,
        offset: operation.offset,
        data,
        truncate: first,
        parents: first,
        ...(operation.last ? { renameTo: operation.path } : {}),
        ...(operation.mode === undefined ? {} : { mode: operation.mode }),
      };
    }
    case 'list':
      return { type: 'list', path: operation.path, depth: operation.depth, after: operation.after };
    case 'remove':
      return { type: 'remove', path: operation.path, recursive: operation.recursive };
    case 'rename':
      return { type: 'rename', path: operation.path, renameTo: operation.to };
    case 'chmod':
      return { type: 'chmod', path: operation.path, mode: operation.mode };
    case 'unpack':
      return { type: 'unpack', path: operation.path, entries: operation.entries.map(toPackedEntry) };
    case 'pack':
      return { type: 'pack', path: operation.path, names: operation.names, room: PACK_ROOM_BYTES };
    case 'stat':
    case 'mkdir':
      return { type: operation.name, path: operation.path };
  }
}

function toPackedEntry({ data, ...entry }: WrittenEntry): PackedEntry {
  return data === undefined ? entry : { ...entry, content: Buffer.from(data, 'base64') };
}

/** Returns the answer of a call. Undefined if it is unknown and must be requested again. Throws a failure. */
export function replyOf(operation: FileOperation, end: FileCallEnd): FileReply | undefined {
  switch (end.type) {
    case 'done':
      return toFileReply(operation, end.stdout, end.stderr);
    case 'failed':
      throw toFileError(operation, end.failure, end.stderr);
    case 'done-before':
      if (end.failure !== undefined) throw toFileError(operation, end.failure, Buffer.alloc(0));
      return onlyReads(operation) ? undefined : {};
    case 'killed':
      if (onlyReads(operation)) return undefined;
      throw stoppedOperation(operation);
    case 'gone':
      return undefined;
    case 'busy':
    case 'invalid':
      throw new ShellfleetError('INTERNAL', `The keeper refused the ${operation.name} of ${operation.path}.`);
  }
}

function toFileReply(operation: FileOperation, stdout: Buffer, stderr: Buffer): FileReply {
  switch (operation.name) {
    case 'read': {
      const [size, mode] = stderr.toString().split(' ');
      return { data: stdout.toString('base64'), size: Number(size), mode: Number.parseInt(mode ?? '', 8) };
    }
    case 'list':
      return { records: toRecords(stdout), more: stderr.toString() === 'more' };
    case 'stat':
      return { records: toRecords(stdout) };
    case 'pack':
      return {
        files: parsePackedFiles(stdout).map(({ errno, mode, content }) => ({
          state: toReadState(errno),
          mode,
          data: content.toString('base64'),
        })),
      };
    default:
      return {};
  }
}

function toReadState(errno: number) {
  if (errno === 0) return 'read';
  if (errno === NO_ROOM_ERRNO) return 'no-room';
  return GONE_ERRNOS.has(errno) ? 'gone' : 'refused';
}

function toRecords(stdout: Buffer): FileRecord[] {
  return parseFileRecords(stdout).map(({ modifiedMs, ...record }) => ({
    ...record,
    modifiedAt: new Date(modifiedMs).toISOString(),
  }));
}

const FAILURES: Record<FileFailure, { code: ConstructorParameters<typeof ShellfleetError>[0]; what: string }> = {
  'not-found': { code: 'FILE_NOT_FOUND', what: 'does not exist' },
  'is-directory': { code: 'FILE_IS_DIRECTORY', what: 'is a directory' },
  denied: { code: 'FILE_DENIED', what: 'may not be used so by the user of the sandbox' },
  'path-invalid': { code: 'PATH_INVALID', what: 'is not a usable path' },
  'too-large': { code: 'FILE_TOO_LARGE', what: 'is too large' },
  'no-space': { code: 'FILE_TOO_LARGE', what: 'does not fit: the sandbox has no space left' },
  'too-slow': { code: 'FILE_DENIED', what: 'took too long, so it was stopped' },
  'no-process': {
    code: 'FILE_DENIED',
    what: 'could not be used: the sandbox has as many processes as limits.pids allows',
  },
  'parts-missing': {
    code: 'CONTAINER_LOST',
    what: 'was not written: the sandbox was replaced meanwhile, with the parts that were there. Write it again',
  },
  link: {
    code: 'PATH_INVALID',
    what: 'is, or leads through, a symbolic link that is not followed. Where rules or approvals decide by paths, give the real one',
  },
  other: { code: 'FILE_DENIED', what: 'could not be used' },
};

export function toFileError(
  operation: FileOperation,
  failure: FileFailure | undefined,
  stderr: Uint8Array,
): ShellfleetError {
  const { code, what } = FAILURES[failure ?? 'other'];
  const detail = Buffer.from(stderr).toString().trim();
  const message =
    describeDenial(operation, failure, detail) ?? `${operation.path} ${what}${detail === '' ? '' : ` (${detail})`}.`;
  return new ShellfleetError(code, message, { path: operation.path, operation: operation.name });
}

export function stoppedOperation({ path, name }: FileOperation): ShellfleetError {
  return new ShellfleetError(
    'CONTAINER_LOST',
    `The ${name} of ${path} was stopped by a restart of the shell, or by a signal. Whether it was done is not known.`,
    { path },
  );
}

/** Returns `Permission denied for uid 1000: /etc/new.`, for example. A write names its path, not the temporary one. */
function describeDenial({ name, path }: FileOperation, failure: FileFailure | undefined, detail: string) {
  const [, place, reason] = (failure === 'denied' && /^([\s\S]+): ([^:\n]+ for uid \d+)$/.exec(detail)) || [];
  if (place === undefined) return undefined;
  return `${reason}: ${name === 'write' ? path : place}.`;
}
