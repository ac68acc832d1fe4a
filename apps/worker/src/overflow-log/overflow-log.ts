import { type FileHandle, mkdir, open, readdir, readFile, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { STREAM_NAMES, type StreamName } from '@shellfleet/protocol';
import type { OverflowPiece } from '../output/output-queue.ts';
import { decodeFrames, encodeOverflowFrame, type OverflowFrame } from './overflow-frame.ts';

// Stores a command's output over the budget of its session's stream on disk, in segments per stream.
//
// OVERFLOW-LOG-1. A piece is in the log when append() resolves. A killed writer leaves the log readable.
// OVERFLOW-LOG-2. Whatever the quota, the first segment and at least the last `segmentBytes` of each stream are kept: a
//     host that adopts the command rebuilds head, tail and totals of the Result from them.
// OVERFLOW-LOG-3. Both streams are read back in the order of writing.

export interface OverflowLogOptions {
  directory: string;
  /** Size of a segment: at least as many bytes as the Result keeps of a stream. */
  segmentBytes: number;
  /** Quota of both streams together, in bytes. Above it the middle is dropped. */
  quotaBytes: number;
}

interface Segment {
  number: number;
  bytes: number;
}

export class OverflowLog {
  readonly #options: OverflowLogOptions;
  readonly #segments: Record<StreamName, Segment[]>;
  readonly #stored: Record<StreamName, number>;
  #nextOrder: number;

  private constructor(options: OverflowLogOptions, found: Found) {
    this.#options = options;
    this.#segments = found.segments;
    this.#stored = found.stored;
    this.#nextOrder = found.nextOrder;
  }

  static async open(options: OverflowLogOptions): Promise<OverflowLog> {
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    return new OverflowLog(options, await readDirectory(options.directory));
  }

  /** Raw offset up to which each stream is stored here; 0 without output. */
  get stored(): Readonly<Record<StreamName, number>> {
    return this.#stored;
  }

  async append(pieces: readonly OverflowPiece[]): Promise<void> {
    for (const stream of STREAM_NAMES) {
      const frames = pieces.flatMap((piece, index) =>
        piece.stream === stream ? encodeOverflowFrame({ ...piece, order: this.#nextOrder + index }) : [],
      );
      if (frames.length > 0) await this.#write(stream, frames);
    }
    this.#nextOrder += pieces.length;
    for (const { stream, rawTo } of pieces) this.#stored[stream] = rawTo;
  }

  /** Reads all pieces that were not dropped, in order, with at most one segment of each stream in memory. */
  async *read(): AsyncGenerator<OverflowPiece> {
    const both = STREAM_NAMES.map((stream) => framesOf(this.#options.directory, stream));
    const heads = await Promise.all(both.map((frames) => frames.next()));
    for (;;) {
      const next = heads.reduce((least, { value }, index) => {
        const order = heads[least]?.value?.order ?? Number.POSITIVE_INFINITY;
        return value !== undefined && value.order < order ? index : least;
      }, 0);
      const frame = heads[next]?.value;
      if (frame === undefined) return;
      const { order: _, ...piece } = frame;
      yield piece;
      heads[next] = await (both[next] as AsyncGenerator<OverflowFrame, undefined>).next();
    }
  }

  async remove(): Promise<void> {
    await rm(this.#options.directory, { recursive: true, force: true });
  }

  async #write(stream: StreamName, parts: readonly Buffer[]): Promise<void> {
    const segment = this.#segmentFor(stream);
    const path = join(this.#options.directory, fileName(stream, segment.number));
    const file = await open(path, 'a', 0o600);
    try {
      await writeAll(file, parts);
      segment.bytes += bytesOf(parts);
    } catch (error) {
      // An incomplete frame (full disk) would make later frames unreadable.
      await file.truncate(segment.bytes).catch(() => undefined);
      throw error;
    } finally {
      await file.close();
    }
    await this.#keepQuota();
  }

  #segmentFor(stream: StreamName): Segment {
    const segments = this.#segments[stream];
    const last = segments.at(-1);
    if (last && last.bytes < this.#options.segmentBytes) return last;
    const next = { number: (last?.number ?? -1) + 1, bytes: 0 };
    segments.push(next);
    return next;
  }

  /** Drops the oldest middle segment of the larger stream, never the first or one of the last two (OVERFLOW-LOG-2). */
  async #keepQuota(): Promise<void> {
    for (;;) {
      const sizes = STREAM_NAMES.map((stream) => this.#segments[stream].reduce((sum, { bytes }) => sum + bytes, 0));
      if (sizes.reduce((sum, size) => sum + size, 0) <= this.#options.quotaBytes) return;
      const candidates = STREAM_NAMES.filter((stream) => this.#segments[stream].length > 3);
      const largest = candidates.sort((a, b) => this.#segments[b].length - this.#segments[a].length)[0];
      if (!largest) return;
      const [dropped] = this.#segments[largest].splice(1, 1);
      if (dropped) await rm(join(this.#options.directory, fileName(largest, dropped.number)), { force: true });
    }
  }
}

/** Appends the parts without joining them. A flood would otherwise leave copies for the garbage collector. */
async function writeAll(file: FileHandle, parts: readonly Buffer[]): Promise<void> {
  let left = parts;
  while (left.length > 0) {
    const { bytesWritten } = await file.writev(left);
    left = partsFrom(left, bytesWritten);
  }
}

function partsFrom(parts: readonly Buffer[], bytes: number): Buffer[] {
  let skipped = bytes;
  return parts.flatMap((part) => {
    const rest = part.subarray(Math.min(skipped, part.length));
    skipped -= part.length - rest.length;
    return rest.length > 0 ? [rest] : [];
  });
}

function bytesOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

function fileName(stream: StreamName, number: number): string {
  return `${stream}.${number}`;
}

interface Found {
  segments: Record<StreamName, Segment[]>;
  stored: Record<StreamName, number>;
  nextOrder: number;
}

/** Reads what the log's next writer needs. It decodes only the end of each stream: earlier segments do not change. */
async function readDirectory(directory: string): Promise<Found> {
  const found: Found = { segments: { stdout: [], stderr: [] }, stored: { stdout: 0, stderr: 0 }, nextOrder: 0 };
  for (const stream of STREAM_NAMES) {
    const numbers = await segmentsOf(directory, stream);
    found.segments[stream] = await Promise.all(
      numbers.map(async (number) => ({ number, bytes: (await stat(join(directory, fileName(stream, number)))).size })),
    );
    for (const segment of found.segments[stream].toReversed()) {
      const path = join(directory, fileName(stream, segment.number));
      const { frames, wholeBytes } = decodeFrames(stream, await readFile(path));
      if (wholeBytes < segment.bytes) await truncate(path, wholeBytes);
      segment.bytes = wholeBytes;
      const last = frames.at(-1);
      if (last === undefined) continue;
      found.stored[stream] = last.rawTo;
      found.nextOrder = Math.max(found.nextOrder, last.order + 1);
      break;
    }
  }
  return found;
}

/** Yields the frames of one stream in order, with one segment in memory at a time. */
async function* framesOf(directory: string, stream: StreamName): AsyncGenerator<OverflowFrame, undefined> {
  for (const number of await segmentsOf(directory, stream)) {
    yield* decodeFrames(stream, await readFile(join(directory, fileName(stream, number)))).frames;
  }
}

async function segmentsOf(directory: string, stream: StreamName): Promise<number[]> {
  const numbers = (await readdir(directory)).flatMap((name) => {
    const [, of, number] = /^(stdout|stderr)\.(\d{1,9})$/.exec(name) ?? [];
    return of === stream ? [Number(number)] : [];
  });
  return numbers.sort((a, b) => a - b);
}
