import type { ShellfleetError } from '@shellfleet/protocol';
import { finishFailed } from '../run/run-entry.ts';
import type { SessionParts } from './session-parts.ts';

/** Ends the first `most` waiting entries unstarted, with an error, unless an entry counts as running. */
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
