import { abortable } from '@shellfleet/concurrency';
import type { ShellfleetError } from '@shellfleet/protocol';

/** Requests of a view that have no reply yet. A reply is dropped if its request is no longer waited for. */
export class PendingReplies {
  readonly #waiting = new Map<string, { reply: PromiseWithResolvers<string>; ask: (() => void) | undefined }>();

  /**
   * Waits for the sealed reply to the request `id`. Rejects with the signal's reason. `ask` sends the request again.
   */
  async expect(id: string, signal: AbortSignal, ask?: () => void): Promise<string> {
    const reply = Promise.withResolvers<string>();
    this.#waiting.set(id, { reply, ask });
    try {
      return await abortable(reply.promise, signal);
    } finally {
      this.#waiting.delete(id);
    }
  }

  settle(id: string, sealed: string): void {
    this.#waiting.get(id)?.reply.resolve(sealed);
  }

  /**
   * Sends all requests again after replies may have been dropped. A host repeats its reply to a request that it has
   * answered.
   */
  requestAgain(): void {
    for (const { ask } of this.#waiting.values()) ask?.();
  }

  close(error: ShellfleetError): void {
    for (const { reply } of this.#waiting.values()) reply.reject(error);
  }
}
