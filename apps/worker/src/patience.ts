import { setTimeout as delay } from 'node:timers/promises';
import { isShellfleetError } from '@shellfleet/protocol';

/** What hears that Redis is away, and back. */
export interface StorageWatcher {
  away(): void;
  back(): void;
}

const LONGEST_PAUSE_MS = 1_000;

/**
 * Repeats a mailbox call until Redis answers it, or the signal says that nobody waits any more.
 * Every script may arrive twice, so a call whose reply was lost is simply made again.
 */
export async function untilAnswered<T>(
  call: () => Promise<T>,
  signal: AbortSignal,
  watcher?: StorageWatcher,
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const answer = await call();
      if (attempt > 0) watcher?.back();
      return answer;
    } catch (error) {
      if (signal.aborted || !isShellfleetError(error) || error.code !== 'QUEUE_UNAVAILABLE') throw error;
      if (attempt === 0) watcher?.away();
      await delay(Math.min(50 * 2 ** attempt, LONGEST_PAUSE_MS), undefined, { signal }).catch(() => {});
    }
  }
}
