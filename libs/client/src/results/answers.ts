import type { ShellfleetError } from '@shellfleet/protocol';

/** Questions of this process that hosts have not answered yet. An answer that nobody waits for any more is dropped. */
export class Answers {
  readonly #waiting = new Map<string, PromiseWithResolvers<string>>();

  /** The sealed answer to the question `id`; rejects with the signal's reason. */
  async expect(id: string, signal: AbortSignal): Promise<string> {
    const answer = Promise.withResolvers<string>();
    const abort = () => answer.reject(signal.reason);
    this.#waiting.set(id, answer);
    signal.addEventListener('abort', abort, { once: true });
    try {
      signal.throwIfAborted();
      return await answer.promise;
    } finally {
      signal.removeEventListener('abort', abort);
      this.#waiting.delete(id);
    }
  }

  settle(id: string, sealed: string): void {
    this.#waiting.get(id)?.resolve(sealed);
  }

  close(error: ShellfleetError): void {
    for (const answer of this.#waiting.values()) answer.reject(error);
  }
}
