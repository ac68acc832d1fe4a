import { setTimeout as delay } from 'node:timers/promises';
import { newSessionJob } from '@shellfleet/placement';
import { ATTRIBUTES, DRIVER_GONE } from '@shellfleet/protocol';
import { runShutdownCommands } from '../shell/prepare-shell.ts';
import type { SessionParts } from './session-parts.ts';
import { LEFT, LOOK, type Step } from './step.ts';

// The ways in which a session ends on this host.

/** Longest wait of a command whose wake-up was lost. */
const POLL_MS = 5_000;
const LEASE_POLL_MS = 100;
/** Longest time for which late output and the last measurement delay a hand-over. */
const LATE_OUTPUT_MS = 200;

/** Waits until something happens. Gives up or closes a session that is unused for long enough. */
export async function waitOrGiveUp(parts: SessionParts): Promise<Step> {
  const { context, driver, files, lease, hosting, terminals } = parts;
  if (terminals.count > 0) hosting.activeAt = performance.now();
  const usedAt = Math.max(hosting.activeAt, files.usedAt);
  const look = lease.held() ? await driver.look(usedAt) : 'stays';
  if (look === 'closing-before') return { type: 'check-close' };
  if (look === 'closing') hosting.close();
  if (look !== 'stays') return LOOK;
  if (await reconnectIdle(parts)) return LOOK;
  const why = whyGiveUp(parts, usedAt);
  if (why !== undefined && (await giveUp(parts, why, () => hosting.isStopping))) return LEFT;
  if (why !== undefined || !lease.held()) return wait(LEASE_POLL_MS, false, parts);
  const timeoutMs = Math.min(POLL_MS, idleTimeoutOf(context), driver.pauseMs ?? POLL_MS);
  return wait(timeoutMs, await asks(parts), parts);
}

/** Connects again to a living shell over the network. Returns whether the session then looks again. */
async function reconnectIdle({ shell, hosting, isMovable }: SessionParts): Promise<boolean> {
  if (!isMovable || shell.sandbox === undefined) return false;
  if (shell.death !== undefined || shell.live?.connected === true) return false;
  const hello = await shell.reconnect(AbortSignal.any([hosting.lost, hosting.unwanted]));
  return hello !== undefined || hosting.state !== 'serving';
}

async function wait(timeoutMs: number, asks: boolean, { hosting }: SessionParts): Promise<Step> {
  await hosting.during({ type: 'waits', asks }, () => hosting.wakeUps.wait({ timeoutMs }));
  return LOOK;
}

async function asks({ admission, context }: SessionParts): Promise<boolean> {
  return admission.digest !== '' && (await context.mailbox.peek())?.runnable === false;
}

/** Returns why an idle session is given up, else undefined. `activeAt` is its last use by `performance.now()`. */
export function whyGiveUp({ shell, context }: SessionParts, activeAt: number): string | undefined {
  if (shell.sandbox === undefined) return 'nothing waits';
  if (shell.death !== undefined || shell.live?.connected !== true) return 'its container is gone';
  const idleTimeoutMs = idleTimeoutOf(context);
  if (performance.now() - activeAt >= idleTimeoutMs) return `it was idle for ${idleTimeoutMs} ms`;
  const { maxLifetimeMs } = context.spec;
  const livesForMs = Date.now() - shell.sandbox.createdAt;
  return livesForMs >= maxLifetimeMs ? `it reached its lifetime of ${maxLifetimeMs} ms` : undefined;
}

/** Returns the idle time of the spec, or that of the session's tenant if it is shorter. */
function idleTimeoutOf({ spec, owner, mostIdleMs }: SessionParts['context']): number {
  return Math.min(spec.idleTimeoutMs, mostIdleMs(owner.keys.tenant));
}

/** Ends the shell and releases the session (SESSION-3), unless it has work again. Returns whether it was released. */
export async function giveUp(parts: SessionParts, why: string, isStopping: () => boolean): Promise<boolean> {
  const { shell, context } = parts;
  const { mailbox, logger, delegation } = context;
  const hadShell = shell.sandbox !== undefined;
  const head = hadShell ? await mailbox.peek() : undefined;
  if (head?.runnable === true && !isStopping()) return false;
  const started = await delegation.withdraw();
  if (started.type !== 'empty') {
    delegation.keep(started);
    return false;
  }
  // The session may have work again before the release below. Then its next Result reports this reason.
  if (hadShell) await endShell(parts, why);
  const event = hadShell ? { type: 'session.lost' as const, data: { reason: why } } : undefined;
  const loss = hadShell ? why : shell.lossReason;
  const released = await mailbox.release(hadShell ? 'lost' : 'queued', event, 'refuse', loss);
  if (released.type === 'busy' && !isStopping()) return false;
  logger.info({ reason: why }, 'session.released');
  await removeJob(parts);
  return true;
}

/** Ends a closing session: shutdown commands, shell, sandbox, slot. */
export async function endClosing(parts: SessionParts): Promise<void> {
  const { mailbox, logger } = parts.context;
  const event = parts.driver.gone ? { type: 'session.closed' as const, data: { reason: DRIVER_GONE } } : undefined;
  await endShell(parts, 'the session was closed');
  await mailbox.release('queued', event);
  logger.info(event?.data ?? {}, 'session.closed');
  await removeJob(parts);
}

/** Releases the session with everything that waits, because this host no longer offers its execution policy. */
export async function leaveToOthers(parts: SessionParts): Promise<void> {
  const { mailbox, spec, logger } = parts.context;
  const reason = `the host stopped offering the policy ${spec.policy.type}`;
  const event = parts.shell.epoch > 0 ? { type: 'session.lost' as const, data: { reason } } : undefined;
  await mailbox.release(event === undefined ? 'queued' : 'lost', event, 'leave');
  logger.info({ reason }, 'session.released');
  await removeJob(parts);
}

/** Gives a session without a living shell to the next host (SESSION-5). It keeps its place in the queue. */
export async function leaveInQueue(parts: SessionParts): Promise<void> {
  const { context, shell, job, lease } = parts;
  const { mailbox, logger } = context;
  // A session in which nothing waits needs no host.
  if (shell.sandbox === undefined && (await giveUp(parts, 'nothing waits', () => false))) return;
  const wasLost = shell.death !== undefined && shell.epoch > 0;
  await shell.abandon();
  const event = wasLost ? { type: 'session.lost' as const, data: { reason: shell.lossReason } } : undefined;
  await mailbox.release(wasLost ? 'lost' : 'queued', event, 'leave');
  logger.info({ reason: 'this host takes nothing new' }, 'session.released');
  // A later renewal would take the lock from the next owner.
  lease.end();
  await mailbox.retry(() => context.jobs.putBack(job));
}

/** Leaves the living shell to the next owner. */
export async function handOver({ shell, late }: SessionParts): Promise<void> {
  shell.leave();
  await late.end();
}

/** Ends the shell of a session that failed. The next attempt adopts one that any worker can reach (SESSION-6). */
export async function leaveFailed({ shell, isMovable }: SessionParts): Promise<void> {
  if (!isMovable) return shell.discard();
  shell.leave();
  await shell.abandon();
}

/**
 * Removes the shell of a session that another host owns, since only one may run (SESSION-1). One that the other host
 * can reach is its shell, and was left already.
 */
export async function abandon({ context, shell }: SessionParts): Promise<void> {
  context.logger.warn({ [ATTRIBUTES.fence]: context.owner.fence }, 'lease.lost');
  await shell.abandon();
}

/** Gives a session whose shell was left, and that any worker can reach, to the next worker (SESSION-6). */
export async function moveOn({ context, shell, late, lease, job }: SessionParts): Promise<void> {
  const { jobs, logger } = context;
  await Promise.race([Promise.all([late.end(), shell.abandon()]), delay(LATE_OUTPUT_MS)]);
  logger.info('session.left');
  // A later renewal would take the lock from the next owner.
  lease.end();
  // Without a reply of Redis, the lock expires soon.
  await jobs.putBack(job).catch((err: unknown) => logger.warn({ err }, 'queue.unavailable'));
}

/** Runs the shutdown commands, whether a caller closed the session or it was given up. Then ends the shell. */
async function endShell({ admission, shell, context, terminals, late }: SessionParts, why: string): Promise<void> {
  const { spec, redaction, egress, logger } = context;
  // The terminals of a dead shell were ended as lost.
  if (shell.ready) await terminals.hangUp();
  if (shell.ready && shell.live !== undefined) {
    const refusal = admission.digest === '' ? undefined : admission.refuseShutdown();
    const endUse = egress?.begin('limited');
    const problems =
      refusal === undefined ? await runShutdownCommands(shell.live, spec, redaction) : [redaction.value(refusal)];
    endUse?.();
    for (const problem of problems) logger.warn({ problem }, 'session.shutdown-command-failed');
  }
  await shell.end(spec.terminationTimeoutMs, why);
  await late.end();
}

/** Removes the job, then checks again: an entry submitted in between found an owner, so its submitter added no job. */
async function removeJob({ job, lease, placement, context }: SessionParts): Promise<void> {
  const { mailbox, jobs, generation } = context;
  // A later renewal would lock a job that is gone.
  lease.end();
  await mailbox.retry(() => jobs.remove(job));
  const head = await mailbox.peek();
  if (head?.runnable !== true) return;
  const next = newSessionJob(job, generation, placement);
  await mailbox.retry(() => jobs.ensure(next));
}
