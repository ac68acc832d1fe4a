import { setTimeout as delay } from 'node:timers/promises';
import { isShellfleetError } from '@shellfleet/protocol';

/** Every script may arrive twice, so a call without an answer is made again. Ends when Redis answers. */
export async function untilAnswered<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isShellfleetError(error) || error.code !== 'QUEUE_UNAVAILABLE') throw error;
      await delay(100);
    }
  }
}
