import { isShellfleetError } from '@shellfleet/protocol';
import { toQueueError } from './queue-error.ts';

/** Listener that is told when calls begin to fail because Redis is down, and when Redis answers again. */
export interface AvailabilityListener {
  onDown(): void;
  onUp(): void;
}

export interface RetryOptions {
  availability?: AvailabilityListener;
  /** Waits before the next attempt. If it rejects, the retries end. Default: a backoff from 50 ms to 1 s. */
  waitBeforeRetry?: () => Promise<void>;
  /**
   * Handling of errors that Redis itself replied with. `retry` (the default) suits a host's writes: Redis may be full,
   * read-only or starting. `throw` suits reads, whose retry would get the same reply unless Redis is starting.
   */
  errorReplies?: 'retry' | 'throw';
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

const pauses = new Set<() => void>();

/** Ends the pauses of all retries in this process. It is called when a connection takes calls again. */
export function redisResumed(): void {
  for (const end of pauses) end();
}

/**
 * Repeats a mailbox call until Redis answers. This is safe because every script may run twice. Rejects with the error
 * of the call when the signal is aborted or the error does not mean that Redis is down.
 */
export async function retryWhileRedisIsDown<T>(
  call: () => Promise<T>,
  signal: AbortSignal | undefined,
  { availability, errorReplies = 'retry', waitBeforeRetry }: RetryOptions = {},
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const answer = await call();
      if (attempt > 0) availability?.onUp();
      return answer;
    } catch (error) {
      if (!isRedisDown(error, errorReplies))
        throw errorReplies === 'throw' && !isShellfleetError(error) ? toQueueError(error) : error;
      if (signal?.aborted) throw error;
      if (attempt === 0) availability?.onDown();
      await (waitBeforeRetry?.() ?? backOff(attempt, signal));
    }
  }
}

function backOff(attempt: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      pauses.delete(end);
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS));
    signal?.addEventListener('abort', end, { once: true });
    pauses.add(end);
  });
}

/** Returns true if a call failed because Redis cannot be reached or is not ready. */
export function isRedisDown(error: unknown, errorReplies: 'retry' | 'throw'): boolean {
  const isOurs = isShellfleetError(error);
  if (isOurs && error.code !== 'QUEUE_UNAVAILABLE') return false;
  if (errorReplies === 'retry') return isOurs;
  const cause = isOurs ? error.cause : error;
  if (!(cause instanceof Error) || cause instanceof TypeError || cause instanceof RangeError) return false;
  return cause.name !== 'ReplyError' || /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)/.test(cause.message);
}
