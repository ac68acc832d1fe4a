/**
 * Keeps the order of calls, some of which take several steps. A call starts in the step in which it is made, unless an
 * exclusive call runs, whose end all later calls await.
 */
export class CallOrder {
  #exclusive: Promise<unknown> | undefined;

  /** Starts the call at once, or after the exclusive calls that were made before. Settles as the call does. */
  run<T>(call: () => Promise<T>): Promise<T> {
    return this.#exclusive === undefined ? call() : this.#exclusive.then(call, call);
  }

  /** Starts the call as run() does. Later calls start when this one has ended or failed. */
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

/** A CallOrder for each key. A key without a call under way takes no memory. */
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
