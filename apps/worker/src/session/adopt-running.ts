import type { Adopted, Entry } from '@shellfleet/mailbox';
import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import { toBegunId } from '../journal/journal.ts';
import { ranInWider } from '../run/run-entry.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { ShellHello } from '../shell/shell.ts';
import type { SessionParts } from './session-parts.ts';
import { startAgain } from './start-again.ts';
import { hasBegun } from './start-entry.ts';
import { asLost, LOOK, type Step, toStart } from './step.ts';

/** What the loop does after an adoption. */
export interface AdoptedRun {
  /** Whether the living shell was adopted, so that entries may start. */
  isAdopted: boolean;
  /** Step for the entry that ran. */
  next: Step;
  /** Error for the first `most` waiting entries, once the entry that ran has ended. */
  failing?: { error: ShellfleetError; most: number };
}

/** Adopts the living sandbox `found`, if any (SESSION-4), and decides what becomes of the entry that ran. */
export async function adoptRunning(
  adopted: Adopted,
  found: Sandbox | undefined,
  parts: SessionParts,
): Promise<AdoptedRun> {
  const { running, shell: before } = adopted;
  const { owner, spec } = parts.context;
  const hello = await adoptShell(adopted, found, parts);
  // The next owner adopts a shell that was left meanwhile, and tells what became of it.
  if (parts.isMovable && parts.hosting.lost.aborted) return { isAdopted: false, next: LOOK };
  if (hello !== undefined) {
    await parts.announcements.adopted(before?.host);
    const next = running === undefined ? LOOK : await followRunning(running, hello, parts);
    return { isAdopted: true, next };
  }
  // A shell that any worker can reach is not lost with the host that opened it.
  const hostLost = before !== undefined && before.host !== owner.host && !parts.isMovable;
  const reason = hostLost ? 'host-lost' : 'container-removed';
  if (adopted.epoch > 0 && (before !== undefined || running !== undefined)) {
    await parts.announcements.lost({ reason, hostId: before?.host ?? adopted.previousHost });
  }
  const next = running === undefined ? LOOK : await startAgain(running, asLost(reason), parts);
  if (!hostLost || adopted.epoch === 0 || spec.onHostLoss !== 'fail') return { isAdopted: false, next };
  const error = new ShellfleetError(
    'SESSION_LOST',
    `Session ${owner.keys.session} was lost with its host ${before.host} before this command started. Its next command gets a new shell.`,
  );
  // Only entries that wait now fail. A submitter of a later entry may have known of the loss.
  return { isAdopted: false, next, failing: { error, most: adopted.waiting } };
}

async function followRunning(entry: Entry, hello: ShellHello, parts: SessionParts): Promise<Step> {
  const { owner, journal } = parts.context;
  // A keeper that any worker can reach refuses what it began for another.
  const startedHere = entry.host === owner.host || parts.isMovable;
  if (ranInWider(entry, parts.context)) {
    // The entry's wider sandbox ended with the process that opened it. The journal has the entry if it began there.
    if (startedHere && !journal.knows(toBegunId(entry, owner.keys))) return toStart(entry);
    return { type: 'end', entry, how: asLost(startedHere ? 'container-removed' : 'host-lost') };
  }
  if (await hasBegun(entry, hello, parts.shell)) return { type: 'run', entry, from: 'resume' };
  // The entry never began here. Another host may have run it.
  return startedHere ? toStart(entry) : startAgain(entry, asLost('host-lost'), parts);
}

/** Returns the keeper's hello if the sandbox is the session's and could be adopted. Otherwise removes it. */
async function adoptShell(
  { shell: before, epochBase, preparedEpoch }: Adopted,
  found: Sandbox | undefined,
  { context, shell, isMovable }: SessionParts,
): Promise<ShellHello | undefined> {
  if (found === undefined) return undefined;
  if (found.id !== before?.sandbox || (before.host !== context.owner.host && !isMovable)) {
    // The shell was never announced as ready, so no entry of the mailbox has run on it.
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
