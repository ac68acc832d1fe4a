import type { KeyedCallOrder } from '@shellfleet/concurrency';
import type { SessionKeys } from '@shellfleet/protocol';
import type { InputContext } from './send-input.ts';
import { sendInput, toInputError, toWrites } from './send-input.ts';

export interface WriteContext extends InputContext {
  readonly inputOrder: KeyedCallOrder;
}

export interface WriteOptions {
  /** Ends the wait for room. What was written of the data until then stays written. */
  signal?: AbortSignal;
}

/** A write is made again, under its number, while Redis is away no longer than this. */
const PATIENCE_MS = 10_000;

/** Writes of this process to one command, in call order, each whole. */
export class OpenStdin {
  readonly #context: WriteContext;
  readonly #keys: SessionKeys;
  readonly #entryId: string;

  constructor(context: WriteContext, keys: SessionKeys, entryId: string) {
    this.#context = context;
    this.#keys = keys;
    this.#entryId = entryId;
  }

  write(data: string | Uint8Array, { signal }: WriteOptions = {}): Promise<void> {
    return this.#inTurn(async (place) => {
      for (const bytes of toWrites(data)) {
        const written = await sendInput({ ...place, signal }, { bytes });
        if (written.type !== 'written') throw toInputError(written, this.#keys, this.#entryId);
      }
    });
  }

  /** Of a stdin that is closed already, or a command that has ended, it is nothing. */
  close(): Promise<void> {
    return this.#inTurn(async (place) => {
      const written = await sendInput(place, { closes: 'end' });
      if (written.type === 'not-open' || written.type === 'unknown')
        throw toInputError(written, this.#keys, this.#entryId);
    });
  }

  #inTurn(
    send: (place: { context: WriteContext; keys: SessionKeys; entryId: string; patienceMs: number }) => Promise<void>,
  ): Promise<void> {
    const [context, keys, entryId] = [this.#context, this.#keys, this.#entryId];
    const turn = () => send({ context, keys, entryId, patienceMs: PATIENCE_MS });
    return context.inputOrder.runExclusive(`${keys.session}\n${entryId}`, turn);
  }
}
