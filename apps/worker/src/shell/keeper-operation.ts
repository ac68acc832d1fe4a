// File operations as the keeper does them, and their encoding as the payload of FILE_CALL.
import { encodeEntries, encodeFileCall, FileFlag, type PackedEntry } from '@shellfleet/keeper';

/**
 * One file operation of the keeper, done as the container's user. Paths are absolute. With `exact`, a symbolic link or `..`
 * on a path is refused.
 */
export type KeeperFileOperation = Operation & { exact?: boolean };

type Operation =
  /** Prints the bytes from offset, at most length, to stdout, and size and mode (octal) of the whole file to stderr. */
  | { type: 'read'; path: string; offset: number; length: number }
  /**
   * Writes at an offset of `path`, and then renames the file to `renameTo` if that is given: the parts of a file are
   * written under a temporary name, and the last part renames it.
   */
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
  /**
   * Prints records for parseFileRecords() of @shellfleet/keeper to stdout, about `pageBytes` of them, and `more` to
   * stderr when others follow. `depth` is 1 by default, and 0 for no limit. `after` is the name of the last record of the
   * page before.
   */
  | { type: 'list'; path: string; depth?: number; after?: string; pageBytes?: number }
  | { type: 'stat'; path: string }
  | { type: 'remove'; path: string; recursive?: boolean }
  /** Makes a directory and its parents. One that exists is no error. */
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
  /** The parts before this one are not there: the sandbox is another one. */
  | 'parts-missing'
  /** A symbolic link is on the path and is not followed. */
  | 'link'
  | 'other';

/** The failures by Linux errno, which the keeper reports. The worker itself may run on another system. */
const fileFailures = new Map<number, FileFailure>([
  [1, 'denied'],
  [2, 'not-found'],
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

/** Returns the payload of FILE_CALL. */
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
