import { createHash } from 'node:crypto';
import type { StoredChunk, StreamName } from '@shellfleet/protocol';

/**
 * Returns the output of an entry, which is derived from the id of the entry, so that any host can compute it. The bytes
 * can have any value.
 */
export function plannedBytes(entryId: string): Record<StreamName, Buffer> {
  const digest = createHash('sha512').update(entryId).digest();
  const of = (stream: number) =>
    Buffer.concat(Array.from({ length: (digest[stream] ?? 0) % 4 }, () => digest.subarray(stream)));
  return { stdout: of(0), stderr: of(1) };
}

const PIECE_BYTES = 48;

/** Returns the pieces that are not stored yet, in turn from both streams, and then a piece that covers no raw byte. */
export function planOutput(entryId: string, from: Record<StreamName, number>, seq: number): StoredChunk[] {
  const planned = plannedBytes(entryId);
  const at = { ...from };
  const pieces: StoredChunk[] = [];
  const push = (stream: StreamName, length: number) => {
    const [rawFrom, rawTo] = [at[stream], at[stream] + length];
    const data = planned[stream].subarray(rawFrom, rawTo);
    pieces.push({ stream, seq: seq + pieces.length, rawFrom, rawTo, omittedBytes: 0, lines: 0, offset: rawFrom, data });
    at[stream] = rawTo;
  };
  while (at.stdout < planned.stdout.length || at.stderr < planned.stderr.length) {
    for (const stream of ['stdout', 'stderr'] as const) {
      const left = planned[stream].length - at[stream];
      if (left > 0) push(stream, Math.min(PIECE_BYTES, left));
    }
  }
  push('stdout', 0);
  return pieces;
}
