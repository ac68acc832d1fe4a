// File operations of the keeper, and their encoding as the payload of FILE_CALL.
import { encodeEntries, encodeFileCall, FileFlag, type PackedEntry } from '@shellfleet/keeper';

/** One file operation of the keeper, on absolute paths. `exact` refuses a symbolic link or `..` on a path. */
export type KeeperFileOperation = Operation & { exact?: boolean };

type Operation =
  /** Prints at most `length` bytes from `offset` to stdout, and size and mode (octal) of the whole file to stderr. */
  | { type: 'read'; path: string; offset: number; length: number }
  /** Writes at an offset of `path`. The last part of a file then renames it to `renameTo`. */
  | {
      type: 'write';
      path: string;
      offset: number;
      data: Uint8Array;
      truncate?: boolean;
      parents?: boolean;
      renameTo?: string;
      mode?: number;
    }
  /** Prints about `pageBytes` of records after the name `after` to stdout. `depth` is 1 by default, 0 for no limit. */
  | { type: 'list'; path: string; depth?: number; after?: string; pageBytes?: number }
  | { type: 'stat'; path: string }
  | { type: 'remove'; path: string; recursive?: boolean }
  /** Makes a directory and its parents. An existing one is no error. */
  | { type: 'mkdir'; path: string }
  | { type: 'rename'; path: string; renameTo: string }
  | { type: 'chmod'; path: string; mode: number }
  | { type: 'unpack'; path: string; entries: readonly PackedEntry[] }
  /** Prints files for parsePackedFiles() to stdout, with at most `room` bytes of content. */
  | { type: 'pack'; path: string; names: readonly string[]; room: number };

export type FileFailure =
  | 'not-found'
  | 'is-directory'
  | 'denied'
  | 'path-invalid'
  | 'too-large'
  | 'no-space'
  | 'too-slow'
  /** The processes of the sandbox have reached their limit. */
  | 'no-process'
  /** The previous parts of the file are missing, because they went to another sandbox. */
  | 'parts-missing'
  /** A symbolic link is on the path and is not followed. */
  | 'link'
  | 'other';

/** Failures by Linux errno, which the keeper reports even to a worker on another system. */
const fileFailures = new Map<number, FileFailure>([
  [1, 'denied'],
  [2, 'not-found'],
  [11, 'no-process'],
  [13, 'denied'],
  [17, 'is-directory'],
  [20, 'path-invalid'],
  [21, 'is-directory'],
  [22, 'path-invalid'],
  [26, 'denied'],
  [27, 'too-large'],
  [28, 'no-space'],
  [30, 'denied'],
  [36, 'path-invalid'],
  [39, 'is-directory'],
  [40, 'link'],
  [110, 'too-slow'],
  [116, 'parts-missing'],
  [122, 'no-space'],
]);

export const toFileFailure = (errno: number): FileFailure => fileFailures.get(errno) ?? 'other';

const NOTHING = new Uint8Array(0);
const PAGE_BYTES = 524_288;

export function toFilePayload(operation: KeeperFileOperation, timeoutMs: number): Buffer {
  const fields = { flags: 0, renameTo: '', offset: 0, length: 0, data: NOTHING, ...toFields(operation) };
  if (operation.exact) fields.flags |= FileFlag.exact;
  return encodeFileCall({ timeoutMs, operation: operation.type, path: operation.path, ...fields });
}

function toFields(operation: KeeperFileOperation) {
  switch (operation.type) {
    case 'read':
      return { offset: operation.offset, length: operation.length };
    case 'write': {
      const { offset, data, renameTo = '', truncate, parents, mode } = operation;
      const given = mode === undefined ? 0 : FileFlag.mode;
      const flags = (truncate ? FileFlag.truncate : 0) | (parents ? FileFlag.parents : 0) | given;
      return { offset, data, renameTo, flags, length: mode ?? 0 };
    }
    case 'list': {
      const { depth = 1, after = '', pageBytes = PAGE_BYTES } = operation;
      return { length: depth, offset: pageBytes, data: Buffer.from(after) };
    }
    case 'remove':
      return { flags: operation.recursive ? FileFlag.recursive : 0 };
    case 'rename':
      return { renameTo: operation.renameTo };
    case 'chmod':
      return { length: operation.mode };
    case 'unpack':
      return { data: encodeEntries(operation.entries) };
    case 'pack':
      return { data: Buffer.from(operation.names.map((name) => `${name}\0`).join('')), length: operation.room };
    case 'stat':
    case 'mkdir':
      return {};
  }
}
