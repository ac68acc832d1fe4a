import { abortable, type Resolvers, withResolvers } from '@shellfleet/concurrency';
import type { ShellfleetError } from '@shellfleet/protocol';

/** Questions of a view that hosts have not answered yet. An answer that comes after its wait has ended is dropped. */
export class PendingAnswers {
  readonly #waiting = new Map<string, { answer: Resolvers<string>; ask: (() => void) | undefined }>();

  /** The sealed answer to the question `id`; rejects with the signal's reason. `ask` sends the question again. */
  async expect(id: string, signal: AbortSignal, ask?: () => void): Promise<string> {
    const answer = withResolvers<string>();
    this.#waiting.set(id, { answer, ask });
    try {
      return await abortable(answer.promise, signal);
    } finally {
      this.#waiting.delete(id);
    }
  }

  settle(id: string, sealed: string): void {
    this.#waiting.get(id)?.answer.resolve(sealed);
  }

  /** Answers may have been dropped. A host answers a question again that it has answered. */
  askAgain(): void {
    for (const { ask } of this.#waiting.values()) ask?.();
  }

  close(error: ShellfleetError): void {
    for (const { answer } of this.#waiting.values()) answer.reject(error);
  }
}
