import type { Call } from '../routes/route.ts';
import type { Work } from './open-work.ts';

/**
 * Waits for at most some time. Returns undefined if the time is up, the client has left or the server stops: the client
 * then asks again, here or at another server. Rejects if the key of the client stops working.
 */
export async function waitWithin<T>(
  { beginWork }: Pick<Call, 'beginWork'>,
  waitMs: number,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  using work = beginWork();
  work.endAfter(waitMs);
  try {
    return await wait(work.signal);
  } catch (error) {
    if (!work.signal.aborted || error !== work.signal.reason || isRevoked(work)) throw error;
    return undefined;
  }
}

const isRevoked = ({ signal }: Work) => (signal.reason as { status?: number }).status === 401;
