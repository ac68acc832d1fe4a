import { isUtf8 } from 'node:buffer';
import { type Session, ShellfleetError } from '@shellfleet/client';

/** A part of a file. */
export interface FileContent {
  /** Size of the whole file. */
  size: number;
  /** Bytes of this part. */
  bytes: number;
  encoding: 'utf8' | 'base64';
  content: string;
  /** Offset of the next part. Absent at the end of the file. */
  next?: number;
}

/** Reads at most `most` bytes of a file. Text is returned as text, and other bytes in base64. */
export async function readPart(
  { files }: Session,
  path: string,
  { offset, most, signal }: { offset: number; most: number; signal: AbortSignal },
): Promise<FileContent> {
  const { size } = await files.stat(path, { signal });
  const pieces: Uint8Array[] = [];
  let at = 0;
  for await (const piece of files.stream(path, { signal })) {
    pieces.push(piece.subarray(Math.max(0, offset - at), Math.max(0, offset + most - at)));
    at += piece.byteLength;
    if (at >= offset + most) break;
  }
  const part = Buffer.concat(pieces);
  const text = textOf(part);
  const bytes = text === undefined ? part.byteLength : Buffer.byteLength(text);
  const end = offset + bytes;
  return {
    ...{ size, bytes },
    ...(text === undefined
      ? { encoding: 'base64' as const, content: part.toString('base64') }
      : { encoding: 'utf8' as const, content: text }),
    // The file may have grown or shrunk since its size was read.
    ...(bytes > 0 && (part.byteLength > bytes || end < size) ? { next: end } : {}),
  };
}

/** Bytes of a character of UTF-8 that a cut may leave at the end. */
const MOST_CUT = 3;

/** Returns bytes as text, without a character that is cut at the end. Returns undefined for other bytes. */
function textOf(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  for (let cut = 0; cut <= MOST_CUT && cut <= bytes.byteLength; cut += 1) {
    const whole = bytes.subarray(0, bytes.byteLength - cut);
    if (isUtf8(whole)) return whole.byteLength === 0 && cut > 0 ? undefined : whole.toString('utf8');
  }
  return undefined;
}

/** Returns the bytes of a content that a model writes. Throws COMMAND_INVALID for one that would lose a part. */
export function toBytes(content: string, encoding: 'utf8' | 'base64'): Buffer {
  const isWhole = encoding === 'utf8' ? content.isWellFormed() : isBase64(content);
  if (isWhole) return Buffer.from(content, encoding);
  const message = encoding === 'utf8' ? 'is not valid Unicode (lone surrogate)' : 'is not base64';
  throw new ShellfleetError('COMMAND_INVALID', `Nothing was written: content ${message}.`, {
    issues: [{ path: 'content', message }],
  });
}

/** Tells whether a text is base64, of either alphabet, with or without padding, also over several lines. */
function isBase64(text: string): boolean {
  const [, digits] = /^([\w+/-]*)={0,2}$/.exec(text.replace(/\s/g, '')) ?? [];
  // A single digit at the end is less than a byte.
  return digits !== undefined && digits.length % 4 !== 1;
}
