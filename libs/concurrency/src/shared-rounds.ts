interface Rounds<T> {
  current: Promise<T>;
  next?: Promise<T>;
}

/** Runs rounds of work, one at a time per key. Calls during a round share the next round, so they wait for both. */
export class SharedRounds<T = void> {
  readonly #work: (key: string) => Promise<T>;
  readonly #rounds = new Map<string, Rounds<T>>();

  constructor(work: (key: string) => Promise<T>) {
    this.#work = work;
  }

  /** Resolves, or rejects, with the first round that begins after this call. */
  run(key: string): Promise<T> {
    const rounds = this.#rounds.get(key);
    if (rounds === undefined) return this.#begin(key);
    const ended = rounds.current.then(
      () => {},
      () => {},
    );
    rounds.next ??= ended.then(() => this.#begin(key));
    return rounds.next;
  }

  #begin(key: string): Promise<T> {
    const rounds: Rounds<T> = { current: this.#work(key) };
    this.#rounds.set(key, rounds);
    const forget = () => {
      if (rounds.next === undefined) this.#rounds.delete(key);
    };
    void rounds.current.then(forget, forget);
    return rounds.current;
  }
}
