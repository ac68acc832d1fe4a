import type { ShellfleetError } from '@shellfleet/protocol';
import { finishFailed } from '../run/run-entry.ts';
import type { SessionParts } from './session-parts.ts';

/**
 * Ends waiting entries of the mailbox unstarted, with an error: all of them, or the first `most`. None while an entry
 * counts as running. Their ends start nothing: no shell is ready then, or the session is not served yet.
 */
export async function failWaiting(
  { context }: SessionParts,
  error: ShellfleetError,
  most = Number.POSITIVE_INFINITY,
): Promise<void> {
  for (let failed = 0; failed < most; failed += 1) {
    const head = await context.mailbox.peek();
    if (head === undefined) return;
    const finished = await finishFailed(head.entry, error, context);
    if (finished.type !== 'finished') return;
  }
}
