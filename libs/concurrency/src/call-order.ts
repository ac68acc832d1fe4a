/**
 * Keeps the order of calls, some of which take several steps. A call starts at once, unless an exclusive call runs: all
 * later calls wait for its end.
 */
export class CallOrder {
  #exclusive: Promise<unknown> | undefined;

  /** Starts the call at once, or after the exclusive calls that were made before it. Settles as the call does. */
  run<T>(call: () => Promise<T>): Promise<T> {
    return this.#exclusive === undefined ? call() : this.#exclusive.then(call, call);
  }

  /** Starts an exclusive call in the same way as run(). Later calls start when it has ended or failed. */
  runExclusive<T>(call: () => Promise<T>): Promise<T> {
    const running = this.run(call);
    const ended = running
      .catch(() => {})
      .then(() => {
        if (this.#exclusive === ended) this.#exclusive = undefined;
      });
    this.#exclusive = ended;
    return running;
  }
}

/** A CallOrder for each key. A key takes no memory while it has no call under way. */
export class KeyedCallOrder {
  readonly #orders = new Map<string, { order: CallOrder; calls: number }>();

  /** Runs the call when all earlier calls under this key have ended. */
  runExclusive<T>(key: string, call: () => Promise<T>): Promise<T> {
    const keyed = this.#orders.get(key) ?? { order: new CallOrder(), calls: 0 };
    this.#orders.set(key, keyed);
    keyed.calls++;
    return keyed.order.runExclusive(call).finally(() => {
      keyed.calls--;
      if (keyed.calls === 0) this.#orders.delete(key);
    });
  }
}
