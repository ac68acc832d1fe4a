import { createHash } from 'node:crypto';
import { abortable } from '@shellfleet/concurrency';
import type { ContentDigest } from '@shellfleet/protocol';
import type { DoneStep, FileSteps } from './file-steps.ts';
import { doStep, SameSandbox } from './file-steps.ts';

/** Most bytes of a file in one step. */
export const PART_BYTES = 524_288;
/** Parts of a file that are requested at the same time. */
const READ_AHEAD = 3;

export interface Part {
  data: Buffer;
  last: boolean;
}

export interface ReadPart {
  data: Uint8Array;
  /** Size of the whole file when this part was read. */
  size: number;
  mode: number;
}

/** Which part of a file is read, in bytes. */
interface FileRange {
  offset: number;
  length: number;
}

const WHOLE_FILE: FileRange = { offset: 0, length: Number.POSITIVE_INFINITY };

interface ReadOptions {
  signal?: AbortSignal | undefined;
  sandbox?: SameSandbox;
  range?: FileRange;
}

/**
 * Yields the file part by part, at least one. A part that is not full is the last. Every part must be from `sandbox`.
 * Within the known size of the file, some parts are requested before the earlier ones are there.
 */
export async function* readParts(
  steps: FileSteps,
  path: string,
  { signal, sandbox = new SameSandbox(path), range = WHOLE_FILE }: ReadOptions = {},
): AsyncGenerator<ReadPart> {
  const end = range.offset + range.length;
  const lengthAt = (offset: number) => Math.min(PART_BYTES, end - offset);
  const read = async (offset: number): Promise<ReadPart> => {
    const step = sandbox.check(await doStep(steps, { name: 'read', path, offset, length: lengthAt(offset) }));
    const { data = '', size = 0, mode = 0o644 } = step;
    return { data: Buffer.from(data, 'base64'), size, mode };
  };
  const ahead: Promise<ReadPart>[] = [];
  let requested = range.offset;
  let known = 0;
  for (let offset = range.offset; ; offset += PART_BYTES) {
    signal?.throwIfAborted();
    while (ahead.length === 0 || (ahead.length < READ_AHEAD && requested < Math.min(known, end))) {
      const part = read(requested);
      part.catch(() => {});
      ahead.push(part);
      requested += PART_BYTES;
    }
    // An abandoned read changes nothing. A caller that removes its incomplete file need not wait for a slow host.
    const part = await abortable(ahead.shift() as Promise<ReadPart>, signal);
    known = part.size;
    yield part;
    const next = offset + PART_BYTES;
    if (part.data.byteLength < lengthAt(offset) || next === part.size || next >= end) return;
  }
}

export interface SentFile {
  path: string;
  /** ULID that identifies the transfer in all its parts. */
  transfer: string;
  mode?: number | undefined;
  /** Digests the whole file, when a person has to be asked. Absent for a source that can be read only once. */
  whole?: (() => Promise<ContentDigest>) | undefined;
}

/**
 * Sends the parts of a file. The last part puts the file in its place. Returns the replies that are still outstanding,
 * all from `sandbox`.
 */
export async function sendParts(
  steps: FileSteps,
  file: SentFile,
  parts: Iterable<Part> | AsyncIterable<Part>,
  options: { signal?: AbortSignal | undefined; onSent?: (bytes: number) => void; sandbox?: SameSandbox } = {},
): Promise<Promise<DoneStep>[]> {
  const { path, transfer, mode } = file;
  const { signal, onSent, sandbox = new SameSandbox(path) } = options;
  const given: { mode?: number; whole?: ContentDigest } = mode === undefined ? {} : { mode };
  const answers: Promise<DoneStep>[] = [];
  let offset = 0;
  for await (const { data, last } of parts) {
    signal?.throwIfAborted();
    const part = { name: 'write', path, offset, last, transfer, data: data.toString('base64'), ...given } as const;
    const describe = async () => {
      // A single part has the digest of the file. If there are several parts, each names the digest of the whole file.
      if (file.whole !== undefined && !(part.offset === 0 && last)) given.whole = await file.whole();
      return { ...part, ...given };
    };
    const sent = await steps.send(part, describe);
    const answer = sent.reply().then((step) => sandbox.check(step));
    answer.catch(() => {});
    answers.push(answer);
    offset += data.byteLength;
    if (answers.length >= steps.ahead) await answers.shift();
    onSent?.(data.byteLength);
  }
  return answers;
}

export async function digestOf(pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<ContentDigest> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of pieces) {
    hash.update(piece);
    bytes += piece.byteLength;
  }
  return { bytes, sha256: hash.digest('hex') };
}

export function* cut(data: Buffer): Generator<Part> {
  for (let offset = 0; offset === 0 || offset < data.byteLength; offset += PART_BYTES) {
    const end = offset + PART_BYTES;
    yield { data: data.subarray(offset, end), last: end >= data.byteLength };
  }
}

/** Yields at least one part. All parts but the last are full. */
export async function* toParts(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  let pending: Buffer[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    pending.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
    bytes += piece.byteLength;
    // At least one byte is held back until the source ends, so that the last part can be marked as the last.
    if (bytes <= PART_BYTES) continue;
    const whole = Buffer.concat(pending);
    let offset = 0;
    for (; whole.byteLength - offset > PART_BYTES; offset += PART_BYTES)
      yield { data: whole.subarray(offset, offset + PART_BYTES), last: false };
    pending = [whole.subarray(offset)];
    bytes = whole.byteLength - offset;
  }
  yield { data: Buffer.concat(pending), last: true };
}
