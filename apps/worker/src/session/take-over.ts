import {
  type Adopted,
  type Entry,
  type Fenced,
  type Finished,
  rerun,
  retryWhileRedisIsDown,
  type Taken,
} from '@shellfleet/mailbox';
import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import { finishLost } from '../run/run-command.ts';
import type { RunDeps } from '../run/run-deps.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { failWaiting } from './fail-waiting.ts';
import type { ServedSession } from './served-session.ts';

/** Steps of the actor, which keeps the state that they change. */
export interface TakeOverSteps {
  makeReady(): Promise<boolean>;
  /** Runs one entry and returns what the step that ended it has started next. */
  run(entry: Entry, from: 'start' | 'resume', deps: RunDeps): Promise<Taken>;
  noteFinished(finished: Finished | Fenced): Taken;
}

/**
 * A4 of the session: finds out what became of the shell and of what ran on it. Returns what the end of that has started next.
 * `found`: its sandbox, alive from before.
 */
export async function takeOver(
  adopted: Adopted,
  found: Sandbox | undefined,
  served: ServedSession,
  steps: TakeOverSteps,
): Promise<Taken> {
  const { owner, announcements } = served;
  const { running, shell } = adopted;
  if (found !== undefined && found.id === shell?.sandbox && shell.host === owner.host) {
    let mismatch: string | undefined;
    const hello = await served.shell.adopt(found, adopted.epochBase, adopted.preparedEpoch).catch((err: unknown) => {
      served.logger.warn({ err }, 'session.adoption-failed');
      if (isShellfleetError(err) && err.code === 'PROTOCOL_MISMATCH') mismatch = err.message;
      return undefined;
    });
    if (hello !== undefined) {
      await announcements.adopted();
      if (running === undefined) return { type: 'empty' };
      if (hello.entryId === running.id) return steps.run(running, 'resume', served);
      // Started here and never begun: the worker died between the two. Elsewhere it may have run.
      return running.host === owner.host ? steps.run(running, 'start', served) : recover(running, served, steps);
    }
    await served.shell.abandon(mismatch);
  } else {
    // A sandbox whose shell was never ready has run nothing of the mailbox's.
    await found?.remove();
  }
  const hostLost = shell !== undefined && shell.host !== owner.host;
  if (adopted.epoch > 0 && (hostLost || running !== undefined)) {
    const reason = hostLost ? 'host-lost' : 'container-removed';
    await announcements.lost({ reason, hostId: shell?.host ?? adopted.previousHost });
  }
  // What waits is judged after it.
  if (running !== undefined) await recover(running, { ...served, mayTakeNext: () => false }, steps);
  if (hostLost && adopted.epoch > 0 && served.spec.onHostLoss === 'fail') {
    const error = new ShellfleetError(
      'SESSION_LOST',
      `Session ${owner.keys.session} was lost with its host ${shell.host} before this command started. Its next command gets a new shell.`,
    );
    // Whoever submits now may know of the loss already.
    await failWaiting(served, error, adopted.waiting);
  }
  return { type: 'empty' };
}

/** What ran on a shell that is gone: run again only where its submitter said that this is safe. */
async function recover(entry: Entry, run: RunDeps, steps: TakeOverSteps): Promise<Taken> {
  if (entry.retry === 'idempotent') {
    const again = await retryWhileRedisIsDown(() => rerun(run.owner, entry.id), run.signal);
    if (again.type === 'restarted' && (await steps.makeReady())) {
      const offsets = { stdout: 0, stderr: 0 };
      return steps.run({ ...entry, offsets, startedAt: Date.now() }, 'start', run);
    }
  }
  return steps.noteFinished(await finishLost(entry, run));
}
