import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Work } from '../streams/open-work.ts';

/**
 * Yields what a source yields, but its first bytes in one piece. An error that the source has within them still has a
 * status, as one of a small directory that cannot be copied.
 */
export async function* joinFirst(pieces: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let first: Uint8Array[] | undefined = [];
  let held = 0;
  for await (const piece of pieces) {
    if (first === undefined) {
      yield piece;
      continue;
    }
    first.push(piece);
    held += piece.byteLength;
    if (held < bytes) continue;
    yield Buffer.concat(first);
    first = undefined;
  }
  if (first !== undefined) yield Buffer.concat(first);
}

/**
 * Sends bytes as the client takes them. The first piece is read before the reply begins, so that an error still has a
 * status. A later error breaks the connection, so that the client does not take a part for the whole.
 */
export async function sendBytes(
  reply: FastifyReply,
  work: Work,
  pieces: AsyncIterable<Uint8Array>,
  length?: number,
): Promise<FastifyReply> {
  const reading = pieces[Symbol.asyncIterator]();
  const first = await reading.next().catch((error: unknown) => {
    work[Symbol.dispose]();
    throw error;
  });
  const bytes = async function* () {
    using _work = work;
    let left = length ?? Number.POSITIVE_INFINITY;
    try {
      for (let step = first; step.done !== true && left > 0; step = await reading.next()) {
        const piece = step.value.subarray(0, Math.min(left, step.value.byteLength));
        left -= piece.byteLength;
        if (piece.byteLength > 0) yield piece;
      }
    } finally {
      await reading.return?.();
    }
    if (length !== undefined && left > 0) throw new Error('The file became shorter while it was sent.');
  };
  if (length !== undefined) reply.header('content-length', length);
  return reply.send(Readable.from(bytes(), { objectMode: false }));
}
