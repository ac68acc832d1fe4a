import type { Entry } from '@shellfleet/mailbox';

/**
 * The entry that this process has admitted, and under which rules: at most one, since only the head of a mailbox is admitted. In a session
 * whose entries are judged, nothing starts that is not here: the record in Redis, which others may write, is not enough.
 */
export class AdmittedEntry {
  #id: string | undefined;
  #first: string | undefined;
  #digest: string | undefined;

  set({ id, first }: Pick<Entry, 'id' | 'first'>, digest: string): void {
    this.#id = id;
    this.#first = first;
    this.#digest = digest;
  }

  /** In this attempt, which says whether it may leave its sandbox. */
  is({ id, first }: Pick<Entry, 'id' | 'first'>, digest: string): boolean {
    return id === this.#id && first === this.#first && digest === this.#digest;
  }

  clear(): void {
    this.#id = undefined;
  }
}
