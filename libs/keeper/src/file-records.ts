// Formats of what file operations print, and of operations with many files, as in file_steps.c and bundle.c.
import { MalformedFrame, readUint64 } from './frames.ts';
import { textsOf, uint32s } from './messages.ts';

export interface ListedFile {
  type: 'file' | 'directory' | 'symlink' | 'other';
  size: number;
  mode: number;
  modifiedMs: number;
  name: string;
  /** Target of a symbolic link. */
  target?: string;
  /** Set on a directory that the listing should enter and the user may not. */
  unreadable?: true;
}

const fileTypes: Record<string, ListedFile['type']> = { f: 'file', d: 'directory', u: 'directory', l: 'symlink' };
const RECORD_FIELDS = 6;

/**
 * Parses the output of `list` and `stat`: type, size, octal mode, modified (ms), name and target, each ended by a zero
 * byte.
 */
export function parseFileRecords(stdout: Uint8Array): ListedFile[] {
  const fields = textsOf(stdout);
  const records: ListedFile[] = [];
  for (let i = 0; i + RECORD_FIELDS <= fields.length; i += RECORD_FIELDS) {
    const [type, size, mode, modified, name, target] = fields.slice(i, i + RECORD_FIELDS) as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    records.push({
      type: fileTypes[type] ?? 'other',
      size: Number(size),
      mode: Number.parseInt(mode, 8),
      modifiedMs: Number(modified),
      name,
      ...(type === 'l' && { target }),
      ...(type === 'u' && { unreadable: true as const }),
    });
  }
  return records;
}

/** Entry of a directory that `unpack` writes. The kind `mode` changes only the mode of an existing file. */
export interface PackedEntry {
  kind: 'directory' | 'file' | 'symlink' | 'mode';
  /** Name relative to the directory. */
  name: string;
  mode: number;
  /** Content of a file, or target of a symbolic link. */
  content?: Uint8Array;
}

const kinds: Record<PackedEntry['kind'], string> = { directory: 'd', file: 'f', symlink: 'l', mode: 'm' };

/** Returns the data of `unpack`. */
export function encodeEntries(entries: readonly PackedEntry[]): Buffer {
  return Buffer.concat(entries.flatMap(encodeEntry));
}

/** Bytes that an entry takes in the data of `unpack`, besides its name and content. */
export const PACKED_ENTRY_BYTES = 16;

function encodeEntry({ kind, name, mode, content = new Uint8Array(0) }: PackedEntry): Uint8Array[] {
  const nameBytes = Buffer.from(name);
  return [uint32s((kinds[kind] ?? '').charCodeAt(0), mode, nameBytes.length, content.length), nameBytes, content];
}

/** File in the output of `pack`. */
export interface PackedFile {
  /** Linux errno, or 0 when the file was read whole. */
  errno: number;
  mode: number;
  content: Buffer;
}

const PACKED_FILE_BYTES = 16;

/** Parses the output of `pack`, which has every requested file. */
export function parsePackedFiles(stdout: Buffer): PackedFile[] {
  const files: PackedFile[] = [];
  for (let at = 0; at < stdout.length; ) {
    if (stdout.length - at < PACKED_FILE_BYTES) throw new MalformedFrame('A packed file is cut short.');
    const end = at + PACKED_FILE_BYTES + readUint64(stdout, at + 8);
    if (end > stdout.length) throw new MalformedFrame('A packed file is cut short.');
    files.push({
      errno: stdout.readUInt32LE(at),
      mode: stdout.readUInt32LE(at + 4),
      content: stdout.subarray(at + PACKED_FILE_BYTES, end),
    });
    at = end;
  }
  return files;
}
