import type { Entry } from '@shellfleet/mailbox';

/**
 * The head that this process has admitted. Where entries are decided about, nothing else starts, whatever Redis has.
 */
export class AdmittedEntry {
  #id: string | undefined;
  #payload: string | undefined;
  #first: string | undefined;
  #digest: string | undefined;

  set({ id, payload, first }: Pick<Entry, 'id' | 'payload' | 'first'>, digest: string): void {
    this.#id = id;
    this.#payload = payload;
    this.#first = first;
    this.#digest = digest;
  }

  /** Returns whether the admitted entry is this one, in this attempt and with this payload. */
  is({ id, payload, first }: Pick<Entry, 'id' | 'payload' | 'first'>, digest: string): boolean {
    return id === this.#id && payload === this.#payload && first === this.#first && digest === this.#digest;
  }

  clear(): void {
    this.#id = undefined;
  }
}
