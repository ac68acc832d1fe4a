import type { StoredChunk, StreamName } from '@shellfleet/protocol';
import { CleanOutput, type CleanOutputOptions } from '../src/output/clean-output.ts';
import type { OverflowPiece } from '../src/output/output-queue.ts';
import type { ResultTextsOptions } from '../src/output/result-texts.ts';

type Options = Required<Pick<CleanOutputOptions, 'streamBytes'>> &
  Pick<CleanOutputOptions, 'createRedactor'> &
  ResultTextsOptions;

export const OPTIONS: Options = {
  streamBytes: 1_000_000,
  maxBytes: 1000,
  maxLines: 100,
  keep: 'head-tail',
  encoding: 'utf8',
};

export function create({ streamBytes, createRedactor, ...texts }: Options): CleanOutput {
  return new CleanOutput({ streamBytes, createRedactor, texts });
}

export type Step = [StreamName, string | Buffer];

export function feed(output: CleanOutput, steps: Step[]): void {
  for (const [stream, data] of steps) output.push(stream, output.received[stream], Buffer.from(data));
}

export function drain(output: CleanOutput): { chunks: StoredChunk[]; overflow: OverflowPiece[] } {
  const chunks: StoredChunk[] = [];
  const overflow: OverflowPiece[] = [];
  for (;;) {
    const released = output.release();
    if (released.chunks.length + released.overflow.length === 0) return { chunks, overflow };
    chunks.push(...released.chunks);
    overflow.push(...released.overflow);
  }
}

export function run(steps: Step[], options: Partial<Options> = {}) {
  const output = create({ ...OPTIONS, ...options });
  feed(output, steps);
  output.end();
  const released = drain(output);
  return { ...released, closing: output.closingChunks(), texts: output.texts() };
}

export function textOf(pieces: { stream: StreamName; data: Uint8Array }[], stream: StreamName): string {
  return Buffer.concat(pieces.filter((piece) => piece.stream === stream).map((piece) => piece.data)).toString();
}

export function entryOf(
  stream: StreamName,
  seq: number,
  [rawFrom, rawTo]: [number, number],
  { data = '', ...rest }: Partial<Omit<StoredChunk, 'data'>> & { data?: string },
): StoredChunk {
  return { stream, seq, rawFrom, rawTo, omittedBytes: 0, lines: 0, offset: 0, ...rest, data: Buffer.from(data) };
}
