import type { KeyedCallOrder } from '@shellfleet/concurrency';
import type { InputWritten } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { InputContext, InputPlace } from './send-input.ts';
import { sendInput, toInputError, toWrites } from './send-input.ts';

export interface WriteContext extends InputContext {
  readonly inputOrder: KeyedCallOrder;
}

/** How an open stdin is written to. */
export interface WriteOptions {
  /** Ends the wait for room. Data that was written before stays written. */
  signal?: AbortSignal | undefined;
}

const RETRY_MS = 10_000;

/**
 * Writes of this process to the stdin of one command, in the order of the calls. The data of one write is not
 * interleaved with other writes.
 */
export class StdinWriter {
  readonly #context: WriteContext;
  readonly #keys: SessionKeys;
  readonly #entryId: string;
  #offset = 0;

  constructor(context: WriteContext, keys: SessionKeys, entryId: string) {
    this.#context = context;
    this.#keys = keys;
    this.#entryId = entryId;
  }

  write(data: string | Uint8Array, { signal }: WriteOptions = {}): Promise<void> {
    return this.#inOrder(async (place) => {
      for (const bytes of toWrites(data)) {
        const written = await sendInput({ ...place, signal }, { bytes });
        if (written.type !== 'written') throw toInputError(written, this.#keys, this.#entryId);
        this.#offset = written.offset;
      }
    });
  }

  /** Closes the stdin. Does nothing for a closed stdin or an ended command. */
  close(): Promise<void> {
    return this.#inOrder(async (place) => {
      const written = await this.#end(place);
      if (written.type === 'not-open' || written.type === 'unknown')
        throw toInputError(written, this.#keys, this.#entryId);
    });
  }

  /** Closes the stdin with a signed end that contains the offset. Other writers may move the offset during the call. */
  async #end(place: InputPlace): Promise<Exclude<InputWritten, { type: 'full' }>> {
    if (!place.context.sealer.signs) return sendInput(place, { closes: 'end' });
    let offset = this.#offset;
    for (;;) {
      const written = await sendInput(place, { closes: 'end', offset });
      if (written.type !== 'misplaced') return written;
      offset = written.offset;
    }
  }

  #inOrder(send: (place: InputPlace) => Promise<void>): Promise<void> {
    const [context, keys, entryId] = [this.#context, this.#keys, this.#entryId];
    const call = () => send({ context, keys, entryId, retryMs: RETRY_MS });
    return context.inputOrder.runExclusive(`${keys.session}\n${entryId}`, call);
  }
}
