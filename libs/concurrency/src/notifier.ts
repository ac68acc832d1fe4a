export interface WaitOptions {
  /** Ends the wait with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Ends the wait without a notification after so many milliseconds. Default: no limit. */
  timeoutMs?: number | undefined;
}

// NOTIFIER-1. A notification that finds nobody waiting is kept for the next wait(). Several of them count as one.
// NOTIFIER-2. notify() ends every wait() that is under way.

/**
 * Wakes a loop that waits for a condition which other code changes.
 *
 * For one waiter, no notification is lost, wherever in its loop the waiter is. Several waiters may share a notifier if
 * each checks its condition in the same step in which it calls wait(): a kept notification goes to one of them only.
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

  /**
   * Resolves to true at the next notification, or at once when one was kept. Resolves to false when `timeoutMs` have
   * passed without one. Rejects with the signal's reason when the signal aborts, or has aborted.
   */
  async wait({ signal, timeoutMs }: WaitOptions = {}): Promise<boolean> {
    signal?.throwIfAborted();
    if (this.#kept) {
      this.#kept = false;
      return true;
    }
    return new Promise((resolve, reject) => {
      // A waiter leaves in the step in which its wait ends, so a notification right behind that is kept.
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
