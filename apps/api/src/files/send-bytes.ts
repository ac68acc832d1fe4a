import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Work } from '../streams/open-work.ts';

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
