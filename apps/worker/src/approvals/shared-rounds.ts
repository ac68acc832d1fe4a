interface Rounds {
  current: Promise<void>;
  next?: Promise<void>;
}

/** Runs rounds of work, one at a time per key. Calls during a round share the next round, so they wait for both. */
export class SharedRounds {
  readonly #work: (key: string) => Promise<void>;
  readonly #rounds = new Map<string, Rounds>();

  constructor(work: (key: string) => Promise<void>) {
    this.#work = work;
  }

  /** Resolves, or rejects, with the first round that begins after this call. */
  run(key: string): Promise<void> {
    const rounds = this.#rounds.get(key);
    if (rounds === undefined) return this.#begin(key);
    rounds.next ??= rounds.current.catch(() => {}).then(() => this.#begin(key));
    return rounds.next;
  }

  #begin(key: string): Promise<void> {
    const rounds: Rounds = { current: this.#work(key) };
    this.#rounds.set(key, rounds);
    const forget = () => {
      if (rounds.next === undefined) this.#rounds.delete(key);
    };
    void rounds.current.then(forget, forget);
    return rounds.current;
  }
}
