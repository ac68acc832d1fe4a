/** One timer for any number of calls. It runs while there are any, and does not keep the process alive. */
export class SharedTimer {
  readonly #everyMs: number;
  readonly #calls = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Calls `call` once per interval until it is removed. It must not throw. Adding it again changes nothing. */
  add(call: () => void): void {
    this.#calls.add(call);
    this.#timer ??= setInterval(() => {
      for (const each of this.#calls) each();
    }, this.#everyMs).unref();
  }

  remove(call: () => void): void {
    this.#calls.delete(call);
    if (this.#calls.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
