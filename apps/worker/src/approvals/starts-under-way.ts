import { withResolvers } from '@shellfleet/concurrency';
import type { AdmissionQuestion } from '../admission/admission.ts';

// The starts of this host that may use an approval.
//
// STARTS-1. A use begins before the host looks for an approval. It ends when none was found, or with the reply of the script that starts the
//           entry: a start whose entry is asked about and held uses none.
// STARTS-2. What begins after a revocation was written finds no approval, so a revocation waits only for the uses that began before it.

type StartingEntry = Pick<AdmissionQuestion, 'tenant' | 'session' | 'generation' | 'entryId'>;

export class StartsUnderWay {
  /** By entry: what ends the uses of its start. */
  readonly #starts = new Map<string, (() => void)[]>();
  readonly #uses = new Set<Promise<void>>();

  /** `start`: everything from the verdict about the entry to the reply of the script that starts it. */
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

  /** Looks for an approval. Outside of `during`, nothing starts on what is found. */
  async look<T>(entry: StartingEntry, find: () => Promise<T>, isFound: (found: T) => boolean): Promise<T> {
    const ends = this.#starts.get(nameOf(entry));
    if (ends === undefined) return find();
    const { promise, resolve } = withResolvers<void>();
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

  /** Resolves when every use has ended that has begun by now. */
  async settled(): Promise<void> {
    await Promise.all(this.#uses);
  }
}

const nameOf = ({ tenant, session, generation, entryId }: StartingEntry) =>
  `${tenant} ${session} ${generation} ${entryId}`;
