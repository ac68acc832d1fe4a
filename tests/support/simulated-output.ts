import { createHash } from 'node:crypto';
import type { StoredChunk, StreamName } from '@shellfleet/protocol';

/**
 * The output of an entry follows from its id, so any host can compute the expected bytes. All 256 byte values, some of
 * them newlines.
 */
export function plannedBytes(entryId: string): Record<StreamName, Buffer> {
  const digest = createHash('sha512').update(entryId).digest();
  const of = (stream: number) =>
    Buffer.concat(Array.from({ length: (digest[stream] ?? 0) % 4 }, () => digest.subarray(stream)));
  return { stdout: of(0), stderr: of(1) };
}

const PIECE_BYTES = 48;

/** The pieces that are not stored yet, streams alternating, and then one that covers no raw byte. */
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
