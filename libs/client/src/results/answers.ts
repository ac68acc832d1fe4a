import { abortable, type Resolvers, withResolvers } from '@shellfleet/concurrency';
import type { ShellfleetError } from '@shellfleet/protocol';

/** Questions of a view that hosts have not answered yet. An answer that comes after its wait has ended is dropped. */
export class Answers {
  readonly #waiting = new Map<string, Resolvers<string>>();

  /** The sealed answer to the question `id`; rejects with the signal's reason. */
  async expect(id: string, signal: AbortSignal): Promise<string> {
    const answer = withResolvers<string>();
    this.#waiting.set(id, answer);
    try {
      return await abortable(answer.promise, signal);
    } finally {
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
