import type { AdmissionInput } from '../admission/admission.ts';

// The starts of this host that may use an approval.
// STARTS-1. A use begins before the host looks for an approval. It ends when none was found, or with the reply of the
//           script that starts the entry. A start whose entry is held for a question uses none.
// STARTS-2. A use that begins after a revocation was written finds no approval, so a revocation waits only for earlier
//           uses.

type StartingEntry = Pick<AdmissionInput, 'tenant' | 'session' | 'generation' | 'entryId'>;

export class StartsUnderWay {
  /** Functions that end the uses of a start, by its entry. */
  readonly #starts = new Map<string, (() => void)[]>();
  readonly #uses = new Set<Promise<void>>();

  /** Runs `start`, which lasts from the verdict about an entry to the reply of the script that starts it. */
  async during<T>(entry: StartingEntry, start: () => Promise<T>): Promise<T> {
    const name = nameOf(entry);
    const ends: (() => void)[] = [];
    this.#starts.set(name, ends);
    try {
      return await start();
    } finally {
      for (const end of ends) end();
      if (this.#starts.get(name) === ends) this.#starts.delete(name);
    }
  }

  /** Looks for an approval with `find`. Outside of `during` no entry is started, so no use is counted. */
  async look<T>(entry: StartingEntry, find: () => Promise<T>, isFound: (found: T) => boolean): Promise<T> {
    const ends = this.#starts.get(nameOf(entry));
    if (ends === undefined) return find();
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => {
      this.#uses.delete(promise);
      resolve();
    };
    this.#uses.add(promise);
    ends.push(end);
    const found = await find();
    if (!isFound(found)) end();
    return found;
  }

  /** Resolves when every use that has begun by now has ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#uses);
  }
}

const nameOf = ({ tenant, session, generation, entryId }: StartingEntry) =>
  `${tenant} ${session} ${generation} ${entryId}`;
