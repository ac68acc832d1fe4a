import { abortable, type Resolvers, withResolvers } from '@shellfleet/concurrency';
import type { ShellfleetError } from '@shellfleet/protocol';

/** Requests of a view that hosts have not replied to. A reply after the end of its wait is dropped. */
export class PendingAnswers {
  readonly #waiting = new Map<string, { answer: Resolvers<string>; ask: (() => void) | undefined }>();

  /** Waits for the sealed reply to `id`. Rejects with the signal's reason. `ask` sends the request again. */
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

  /** Repeats requests whose replies may have been dropped. A host replies again. */
  askAgain(): void {
    for (const { ask } of this.#waiting.values()) ask?.();
  }

  close(error: ShellfleetError): void {
    for (const { answer } of this.#waiting.values()) answer.reject(error);
  }
}
