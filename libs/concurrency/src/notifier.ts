export interface WaitOptions {
  /** Ends the wait with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Ends the wait without a notification after this time in milliseconds. Default: no limit. */
  timeoutMs?: number | undefined;
}

// NOTIFIER-1. A notification without a waiter is kept for the next wait(). Several of them count as one.
// NOTIFIER-2. notify() ends every wait() that is under way.

/**
 * Wakes a loop that waits for a condition which other code changes. Several waiters may share a notifier if each checks
 * its condition in the step of its wait(): a kept notification goes to one of them only.
 *
 * ```ts
 * while (!queue.isEmpty) await notifier.wait({ signal });
 * ```
 */
export class Notifier {
  #kept = false;
  readonly #waiters = new Set<() => void>();

  notify(): void {
    this.#kept = this.#waiters.size === 0;
    for (const wake of this.#waiters) wake();
  }

  /** Resolves to true at a new or kept notification, and to false after `timeoutMs`. Rejects when the signal aborts. */
  async wait({ signal, timeoutMs }: WaitOptions = {}): Promise<boolean> {
    signal?.throwIfAborted();
    if (this.#kept) {
      this.#kept = false;
      return true;
    }
    return new Promise((resolve, reject) => {
      // A waiter is removed in the same step in which its wait ends, so that the next notification is kept.
      const leave = () => {
        this.#waiters.delete(wake);
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      const wake = () => {
        leave();
        resolve(true);
      };
      const abort = () => {
        leave();
        reject(signal?.reason);
      };
      const expire = () => {
        leave();
        resolve(false);
      };
      const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs);
      signal?.addEventListener('abort', abort, { once: true });
      this.#waiters.add(wake);
    });
  }
}
