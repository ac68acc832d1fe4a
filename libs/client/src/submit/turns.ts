/** Keeps the order of calls on one session where a call has to send in several steps: those after it wait for its last step. */
export class Turns {
  #busy: Promise<unknown> | undefined;

  /** Runs `send` at once, in the same step as the call, unless a longer turn is under way. */
  take<T>(send: () => Promise<T>): Promise<T> {
    return this.#busy === undefined ? send() : this.#busy.then(send, send);
  }

  /** Runs `send` in its turn, and lets nobody else send before it has ended. */
  hold<T>(send: () => Promise<T>): Promise<T> {
    const turn = this.take(send);
    const over = turn
      .catch(() => {})
      .then(() => {
        if (this.#busy === over) this.#busy = undefined;
      });
    this.#busy = over;
    return turn;
  }
}

/** Turns of many names; a name that nobody holds is not remembered. */
export class NamedTurns {
  readonly #turns = new Map<string, { turns: Turns; held: number }>();

  hold<T>(name: string, send: () => Promise<T>): Promise<T> {
    const named = this.#turns.get(name) ?? { turns: new Turns(), held: 0 };
    this.#turns.set(name, named);
    named.held++;
    return named.turns.hold(send).finally(() => {
      named.held--;
      if (named.held === 0) this.#turns.delete(name);
    });
  }
}
