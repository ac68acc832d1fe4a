import { newSessionJob, toPlacement } from '@shellfleet/admission';
import { peek, release, retryWhileRedisIsDown } from '@shellfleet/mailbox';
import { ATTRIBUTES } from '@shellfleet/protocol';
import { runShutdownCommands } from '../shell/prepare-shell.ts';
import type { ServedSession } from './served-session.ts';

// The ways in which a session ends on this host. A1 and A3 are those of the session.

/** A3: ends the shell and gives the session up. Returns whether it is: when something was submitted meanwhile, it goes on. */
export async function giveUp(served: ServedSession, why: string): Promise<boolean> {
  const { owner, shell, signal } = served;
  const hadShell = shell.hasSandbox;
  if (hadShell && (await retryWhileRedisIsDown(() => peek(owner), signal)) !== undefined && !served.isStopping())
    return false;
  if (hadShell) await endShell(served);
  const event = hadShell ? { type: 'session.lost' as const, data: { reason: why } } : undefined;
  const released = await retryWhileRedisIsDown(() => release(owner, hadShell ? 'lost' : 'queued', event), signal);
  if (released.type === 'busy' && !served.isStopping()) return false;
  served.logger.info({ reason: why }, 'session.released');
  await removeJob(served);
  return true;
}

/** Ends a closing session: shutdown commands, shell, sandbox, slot. */
export async function endClosing(served: ServedSession): Promise<void> {
  await endShell(served);
  await retryWhileRedisIsDown(() => release(served.owner, 'queued'), served.signal);
  served.logger.info('session.closed');
  await removeJob(served);
}

/** Gives the session up with everything that waits, because this host no longer offers its execution policy. */
export async function leaveToOthers(served: ServedSession): Promise<void> {
  const { owner, shell, signal, spec } = served;
  const reason = `the host stopped offering the policy ${spec.policy.type}`;
  const event = shell.epoch > 0 ? { type: 'session.lost' as const, data: { reason } } : undefined;
  await retryWhileRedisIsDown(() => release(owner, event === undefined ? 'queued' : 'lost', event, 'leave'), signal);
  served.logger.info({ reason }, 'session.released');
  await removeJob(served);
}

/** The shell lives on for the next owner. */
export async function handOver({ shell, late }: ServedSession): Promise<void> {
  shell.leave();
  await late.end();
}

/** A1: another host owns the session. Our shell must not go on beside its. */
export async function abandon({ logger, owner, shell }: ServedSession): Promise<void> {
  logger.warn({ [ATTRIBUTES.fence]: owner.fence }, 'lease.lost');
  await shell.abandon();
}

/** In order: whoever gave shutdown commands counts on them whenever the fleet ends a shell, not only when a caller closes the session. */
async function endShell({ shell, spec, redaction, terminals, late, logger }: ServedSession): Promise<void> {
  // Of one that died its users are told that it is lost.
  if (shell.ready) await terminals.hangUp();
  if (shell.ready) {
    for (const problem of await runShutdownCommands(shell.turns, spec, redaction))
      logger.warn({ problem }, 'session.shutdown-command-failed');
  }
  await shell.end(spec.terminationTimeoutMs);
  await late.end();
}

/** The job goes first, then a second look: a submit in between has found an owner, and adds no job itself. */
async function removeJob({ job, jobs, generation, lease, owner, spec, signal }: ServedSession): Promise<void> {
  // A renewal behind this would lock a job that is gone.
  lease.end();
  await retryWhileRedisIsDown(() => jobs.remove(job), signal);
  const head = await retryWhileRedisIsDown(() => peek(owner), signal);
  if (head !== undefined)
    await retryWhileRedisIsDown(() => jobs.ensure(newSessionJob(job, generation, toPlacement(spec))), signal);
}
