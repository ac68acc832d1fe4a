import { giveUp, whyGiveUp } from './end-session.ts';
import type { SessionParts } from './session-parts.ts';
import { LEFT, LOOK, type Step } from './step.ts';

/** Longest wait of a command whose wake-up was lost. */
const POLL_MS = 5_000;
const LEASE_POLL_MS = 100;

/** Waits until something happens. Gives up or closes a session that is unused for long enough. */
export async function waitOrGiveUp(parts: SessionParts): Promise<Step> {
  const { context, driver, files, lease, hosting, terminals } = parts;
  if (terminals.count > 0) hosting.activeAt = performance.now();
  const usedAt = Math.max(hosting.activeAt, files.usedAt);
  const look = lease.held() ? await driver.look(usedAt) : 'stays';
  if (look === 'closing-before') return { type: 'check-close' };
  if (look === 'closing') hosting.close();
  if (look !== 'stays') return LOOK;
  const why = whyGiveUp(parts, usedAt);
  if (why !== undefined && (await giveUp(parts, why, () => hosting.isStopping))) return LEFT;
  if (why !== undefined || !lease.held()) return wait(LEASE_POLL_MS, false, parts);
  const { idleTimeoutMs } = context.spec;
  const timeoutMs = Math.min(POLL_MS, idleTimeoutMs, driver.pauseMs ?? POLL_MS);
  return wait(timeoutMs, await asks(parts), parts);
}

async function wait(timeoutMs: number, asks: boolean, { hosting }: SessionParts): Promise<Step> {
  await hosting.during({ type: 'waits', asks }, () => hosting.wakeUps.wait({ timeoutMs }));
  return LOOK;
}

async function asks({ admission, context }: SessionParts): Promise<boolean> {
  return admission.digest !== '' && (await context.mailbox.peek())?.runnable === false;
}
