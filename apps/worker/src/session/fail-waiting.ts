import { peek, retryWhileRedisIsDown } from '@shellfleet/mailbox';
import type { ShellfleetError } from '@shellfleet/protocol';
import { finishFailed } from '../run/run-command.ts';
import type { ServedSession } from './served-session.ts';

/** Ends what waits in the mailbox, unstarted: all of it, or its first `most` entries. */
export async function failWaiting(
  served: ServedSession,
  error: ShellfleetError,
  most = Number.POSITIVE_INFINITY,
): Promise<void> {
  for (let failed = 0; failed < most; failed += 1) {
    const head = await retryWhileRedisIsDown(() => peek(served.owner), served.signal);
    if (head === undefined) return;
    const finished = await finishFailed(head, error, { ...served, mayTakeNext: () => false });
    if (finished.type === 'fenced') return served.onFenced();
  }
}
