import { isShellfleetError } from '@shellfleet/protocol';
import type { Wake } from './feeds.ts';

/** A reader outlives an absence of Redis: it tries again at the next hint, until it works or the signal aborts. What Redis says is believed at once. */
export async function patiently<T>(call: () => Promise<T>, wake: Wake, signal: AbortSignal | undefined): Promise<T> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (isShellfleetError(error)) throw error;
      await wake.next(signal);
    }
  }
}
