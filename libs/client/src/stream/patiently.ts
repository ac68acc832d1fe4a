import { toQueueError } from '@shellfleet/mailbox';
import { isShellfleetError } from '@shellfleet/protocol';
import type { Wake } from './feeds.ts';

/** A reader outlives an absence of Redis: it tries again at the next hint, until it works or the signal aborts. What Redis says is believed at once. */
export async function patiently<T>(call: () => Promise<T>, wake: Wake, signal: AbortSignal | undefined): Promise<T> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (!isAbsence(error)) throw isShellfleetError(error) ? error : toQueueError(error);
      await wake.next(signal);
    }
  }
}

/** The connection failed, or Redis says that it cannot answer yet. Any other answer will not become better. */
function isAbsence(error: unknown): boolean {
  if (isShellfleetError(error) || !(error instanceof Error)) return false;
  if (error instanceof TypeError || error instanceof RangeError) return false;
  return error.name !== 'ReplyError' || /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)/.test(error.message);
}
