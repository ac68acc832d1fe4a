import type { Entry } from '@shellfleet/mailbox';

/**
 * The entry that this process has admitted, and under which rules: at most one, since only the head of a mailbox is admitted. In a session
 * about whose entries its host decides, nothing starts that is not here: the record in Redis, which others may write,
 * is not enough.
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

  /**
   * In this attempt, which says whether it may leave its sandbox; with the payload that was decided, which may have
   * come by a wake-up.
   */
  is({ id, payload, first }: Pick<Entry, 'id' | 'payload' | 'first'>, digest: string): boolean {
    return id === this.#id && payload === this.#payload && first === this.#first && digest === this.#digest;
  }

  clear(): void {
    this.#id = undefined;
  }
}
