import type { Entry } from '@shellfleet/mailbox';

/**
 * The entry that this process has admitted, and under which rules: at most one, since only the head of a mailbox is admitted. In a session
 * whose entries are judged, nothing starts that is not here: the record in Redis, which others may write, is not enough.
 */
export class AdmittedEntry {
  #id: string | undefined;
  #digest: string | undefined;

  set({ id }: Pick<Entry, 'id'>, digest: string): void {
    this.#id = id;
    this.#digest = digest;
  }

  is({ id }: Pick<Entry, 'id'>, digest: string): boolean {
    return id === this.#id && digest === this.#digest;
  }

  clear(): void {
    this.#id = undefined;
  }
}
