import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogPage, StreamName } from '@shellfleet/protocol';
import { decodeFrames, OVERFLOW_HEADER_BYTES, type OverflowFrame, readBytesBefore } from './overflow-frame.ts';

/** Position of a reader of the full log: the redacted bytes of each stream that it has. */
export interface PageRequest {
  streams: readonly StreamName[];
  from: Readonly<Record<StreamName, number>>;
  maxBytes: number;
}

interface Candidate {
  frames: OverflowFrame[];
  /** False when later frames of this stream are in files that were not read. */
  isLast: boolean;
}

/** Reads about `maxBytes` after `from` in the order of writing, only complete frames. A missing log is empty. */
export async function readLogPage(directory: string, { streams, from, maxBytes }: PageRequest): Promise<LogPage> {
  const names = await readdir(directory).catch(() => []);
  const candidates = await Promise.all(streams.map((stream) => readCandidate(directory, names, stream, from[stream])));
  // Unread frames of one stream may belong before later frames of the other. So only frames before them are returned.
  const known = Math.min(...candidates.filter(({ isLast }) => !isLast).map(({ frames }) => frames.at(-1)?.order ?? -1));
  const frames = candidates.flatMap((candidate) => candidate.frames).sort((a, b) => a.order - b.order);
  const page: LogPage = { pieces: [], more: false };
  let bytes = 0;
  for (const frame of frames) {
    if (bytes >= maxBytes || frame.order > known) return { ...page, more: true };
    const skipped = Math.max(0, from[frame.stream] - frame.bytesBefore);
    const data = frame.data.subarray(skipped, skipped + maxBytes - bytes);
    bytes += data.length;
    page.pieces.push({ stream: frame.stream, offset: frame.bytesBefore + skipped, data });
    if (skipped + data.length < frame.data.length) return { ...page, more: true };
  }
  return { ...page, more: candidates.some(({ isLast }) => !isLast) };
}

/** Reads the frames of one stream that end after `from`, from the first file that has any. */
async function readCandidate(directory: string, names: string[], stream: StreamName, from: number): Promise<Candidate> {
  const numbers = names
    .flatMap((name) => (name.startsWith(`${stream}.`) ? [Number(name.slice(stream.length + 1))] : []))
    .sort((a, b) => a - b);
  const beginOf = (number: number | undefined) => readBegin(join(directory, `${stream}.${number}`));
  let at = Math.max(0, numbers.length - 1);
  // Searched from the end, where an attached reader is.
  while (at > 0 && (await beginOf(numbers[at])) > from) at -= 1;
  for (; at < numbers.length; at += 1) {
    const isLast = at === numbers.length - 1;
    const bytes = await readFile(join(directory, `${stream}.${numbers[at]}`)).catch(() => Buffer.alloc(0));
    const frames = decodeFrames(stream, bytes).frames.filter((frame) => frame.bytesBefore + frame.data.length > from);
    if (frames.length > 0 || isLast) return { frames, isLast };
  }
  return { frames: [], isLast: true };
}

/** Reads the offset of a file's first frame. Returns infinity when the file is missing or has no frame. */
async function readBegin(path: string): Promise<number> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return Number.POSITIVE_INFINITY;
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(OVERFLOW_HEADER_BYTES), 0, OVERFLOW_HEADER_BYTES, 0);
    return bytesRead === OVERFLOW_HEADER_BYTES ? readBytesBefore(buffer) : Number.POSITIVE_INFINITY;
  } finally {
    await file.close();
  }
}
