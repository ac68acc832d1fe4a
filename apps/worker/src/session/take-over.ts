import type { Adopted, Entry, Taken } from '@shellfleet/mailbox';
import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import { toBegunId } from '../run/begun-id.ts';
import type { LossReason } from '../run/results.ts';
import { ranOutside } from '../run/runs-outside.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { ShellHello } from '../shell/shell.ts';
import { failWaiting } from './fail-waiting.ts';
import { hasBegun } from './has-begun.ts';
import type { SessionParts } from './session-parts.ts';
import { startAgain } from './start-again.ts';

/** Steps of the session's loop, which writes the session's state. */
export interface TakeOverSteps {
  /** The living shell was adopted: entries may be started from here on. */
  serve(): void;
  makeReady(): Promise<boolean>;
  /** Whether an entry may run on another shell than the one that is gone. */
  mayRun(entry: Entry): Promise<boolean>;
  /** Runs one entry and returns the entry that was started with its end. */
  run(entry: Entry, from: 'start' | 'resume'): Promise<Taken>;
  finishLost(entry: Entry, reason: LossReason): Promise<Taken>;
}

const EMPTY: Taken = { type: 'empty' };

/**
 * SESSION-4: takes over the shell and the entry that ran on it. Returns the entry that the end of that entry started.
 * `found`: the session's sandbox, when one is alive on this host.
 */
export async function takeOver(
  adopted: Adopted,
  found: Sandbox | undefined,
  parts: SessionParts,
  steps: TakeOverSteps,
): Promise<Taken> {
  const { running, shell: before } = adopted;
  const { owner } = parts.context;
  const hello = await adoptShell(adopted, found, parts);
  if (hello !== undefined) {
    await parts.announcements.adopted();
    steps.serve();
    if (running === undefined) return EMPTY;
    if (ranOutside(running, parts.context)) return outsideAgain(running, parts, steps);
    if (await hasBegun(running, hello, parts.shell)) return steps.run(running, 'resume');
    // This host started it and its keeper never began it: the worker died in between. Started by another host, it may have run there.
    return running.host === owner.host ? steps.run(running, 'start') : recover(running, 'host-lost', parts, steps);
  }
  const hostLost = before !== undefined && before.host !== owner.host;
  const reason = hostLost ? 'host-lost' : 'container-removed';
  if (adopted.epoch > 0 && (before !== undefined || running !== undefined)) {
    await parts.announcements.lost({ reason, hostId: before?.host ?? adopted.previousHost });
  }
  // Its end starts no waiting entry: those are judged below.
  if (running !== undefined) await recover(running, reason, parts, steps);
  if (hostLost && adopted.epoch > 0 && parts.context.spec.onHostLoss === 'fail') {
    const error = new ShellfleetError(
      'SESSION_LOST',
      `Session ${owner.keys.session} was lost with its host ${before.host} before this command started. Its next command gets a new shell.`,
    );
    // Later entries were submitted when the loss may have been known.
    await failWaiting(parts, error, adopted.waiting);
  }
  return EMPTY;
}

/** The wider sandbox of an entry ended with the process that had opened it. The journal knows whether it began there. */
async function outsideAgain(running: Entry, { context }: SessionParts, steps: TakeOverSteps): Promise<Taken> {
  const { owner, journal } = context;
  const neverBegan = running.host === owner.host && !journal.knows(toBegunId(running, owner.keys));
  if (neverBegan) return steps.run(running, 'start');
  return steps.finishLost(running, running.host === owner.host ? 'container-removed' : 'host-lost');
}

/** The keeper's hello when the living sandbox is the session's and could be adopted. Otherwise the sandbox is removed. */
async function adoptShell(
  { shell: before, epochBase, preparedEpoch }: Adopted,
  found: Sandbox | undefined,
  { context, shell }: SessionParts,
): Promise<ShellHello | undefined> {
  if (found === undefined) return undefined;
  if (found.id !== before?.sandbox || before.host !== context.owner.host) {
    // Its shell was never announced as ready, so no entry of the mailbox has run on it.
    await found.remove();
    return undefined;
  }
  try {
    return await shell.adopt(found, epochBase, preparedEpoch);
  } catch (err) {
    context.logger.warn({ err }, 'session.adoption-failed');
    const isMismatch = isShellfleetError(err) && err.code === 'PROTOCOL_MISMATCH';
    await shell.abandon(
      isMismatch
        ? err.message
        : shell.death === undefined
          ? 'its keeper did not answer when its worker came back'
          : undefined,
    );
    return undefined;
  }
}

/** The shell of a running entry is gone: the entry is run again if its submitter declared it idempotent, and ends as `lost` otherwise. */
async function recover(
  entry: Entry,
  reason: LossReason,
  { context }: SessionParts,
  steps: TakeOverSteps,
): Promise<Taken> {
  const again = await startAgain(entry, context, { ...steps, mayRun: () => steps.mayRun(entry) });
  return again === undefined ? steps.finishLost(entry, reason) : steps.run(again, 'start');
}
