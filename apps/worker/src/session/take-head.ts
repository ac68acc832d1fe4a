import type { SessionParts } from './session-parts.ts';
import { LOOK, type Step, toStep, WAIT } from './step.ts';

/** Takes the head of the mailbox when the shell is ready for it (SESSION-2). Otherwise opens the shell first. */
export async function takeHead(parts: SessionParts): Promise<Step> {
  const { context, heldHead, lease, shell } = parts;
  const { mailbox } = context;
  if (!lease.held()) return WAIT;
  await heldHead.look();
  if (!shell.ready) {
    const head = await mailbox.peek();
    if (head?.runnable !== true) return WAIT;
    // No shell is opened for an entry that is held or denied.
    const { digest } = parts.admission;
    if (digest !== '' && digest !== head.cleared) return { type: 'decide', entry: head.entry, opened: false };
    return { type: 'open', next: LOOK, entry: head.entry };
  }
  // The lease may end while Redis is down.
  const taken = await mailbox.retry(async (once) => (lease.held() ? once.take() : undefined));
  return taken === undefined ? WAIT : toStep(taken, WAIT);
}
