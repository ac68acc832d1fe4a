/**
 * Waits for a promise until the signal aborts, and then rejects with its reason. The promise itself is not cancelled:
 * its later value or error is dropped.
 *
 * ```ts
 * const stream = await abortable(socket.open(), signal);
 * ```
 */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    // The signal is first, so that the caller gets the abort when both have settled.
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
