import type { Readable } from 'node:stream';
import { abortable } from '@shellfleet/concurrency';

/** Yields a body while it arrives. Throws the reason of the signal when it aborts, also while nothing arrives. */
export async function* readBody(body: Readable, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const pieces: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await abortable(pieces.next(), signal);
      if (step.done) return;
      yield step.value;
    }
  } finally {
    // The return is not awaited, because it waits for the next piece of the body, which may never come.
    pieces.return?.().catch(() => {});
  }
}
