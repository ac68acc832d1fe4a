import type { Fenced, Taken } from '@shellfleet/mailbox';
import type { SessionParts } from './session-parts.ts';

const EMPTY: Taken = { type: 'empty' };

/** SESSION-2: takes the head of the mailbox, on a shell that `makeReady` opens if there is none. */
export async function takeHead(parts: SessionParts, makeReady: () => Promise<boolean>): Promise<Taken | Fenced> {
  const { context, heldHead, lease, shell } = parts;
  const { mailbox } = context;
  await heldHead.look();
  if (!shell.ready) {
    const head = await mailbox.peek();
    if (head?.runnable !== true) return EMPTY;
    // No shell is opened for an entry that is held or denied.
    const { digest } = parts.admission;
    if (digest !== '' && digest !== head.cleared) return { type: 'needs-admission', entry: head.entry };
    if (!(await makeReady())) return EMPTY;
  }
  // The lease may end while a shell is opened, and while Redis is down.
  return mailbox.retry(async (once) => (lease.held() ? once.take() : EMPTY));
}
