import { giveUp, whyGiveUp } from './end-session.ts';
import type { SessionParts } from './session-parts.ts';

/** Longest wait of a command whose wake-up was lost. */
const POLL_MS = 5_000;
const LEASE_POLL_MS = 100;

export type Idle =
  | { type: 'given-up' }
  /** Its driver is gone. Or somebody else closed it, as the mailbox says. */
  | { type: 'closing' | 'closing-before' | 'fenced' }
  /** It waits for at most so long. `asks`: its next entry waits for an approval. */
  | { type: 'waits'; timeoutMs: number; asks: boolean };

/** Gives up a session that has nothing to do, or begins to close it, when it is time for that. `activeAt`: when it was last used, by `performance.now()`. */
export async function endIfUnused(parts: SessionParts, activeAt: number, isStopping: () => boolean): Promise<Idle> {
  const { driver, lease } = parts;
  if (lease.held()) {
    const type = await driver.look(activeAt);
    if (type !== 'stays') return { type };
  }
  const why = whyGiveUp(parts, activeAt);
  if (why !== undefined && (await giveUp(parts, why, isStopping))) return { type: 'given-up' };
  if (why !== undefined || !lease.held()) return { type: 'waits', timeoutMs: LEASE_POLL_MS, asks: false };
  const { idleTimeoutMs } = parts.context.spec;
  const timeoutMs = Math.min(POLL_MS, idleTimeoutMs, driver.pauseMs ?? POLL_MS);
  return { type: 'waits', timeoutMs, asks: await asks(parts) };
}

async function asks({ admission, context }: SessionParts): Promise<boolean> {
  return admission.digest !== '' && (await context.mailbox.peek())?.runnable === false;
}
