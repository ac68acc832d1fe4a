import type { Entry, Fenced, Taken } from '@shellfleet/mailbox';
import type { EntryFinished } from '../run/finish-entry.ts';
import type { LossReason } from '../run/results.ts';
import { finishLost, finishNeverBegun, finishOverdue } from '../run/run-entry.ts';
import type { SessionContext } from '../run/session-context.ts';

/** Stores the Result of an entry that does not run (again). */
export type EndUnrun = (entry: Entry, context: SessionContext) => Promise<EntryFinished>;

/** What a session does next. The loop executes a step, which returns the next one. */
export type Step =
  /** Looks for an entry that a wake-up has brought, then in the mailbox. */
  | { type: 'look' }
  /** Waits, since nothing can be started. An unused session is given up. */
  | { type: 'wait' }
  /** Asks whether a producer has closed the session, as the mailbox reports. */
  | { type: 'check-close' }
  /** Opens the shell for a waiting entry, which another host could run as well. */
  | { type: 'open'; next: Step; entry: Entry }
  /** Decides whether the head of the mailbox may start. `opened` means that the shell was opened for it. */
  | { type: 'decide'; entry: Entry; opened: boolean }
  /** Finds out what became of an entry that the mailbox gave to this host as started. */
  | { type: 'taken'; entry: Entry }
  /** Checks that a started entry may reach the shell. Without a shell, `orElse` ends the entry. */
  | { type: 'start'; entry: Entry; orElse: EndUnrun }
  /** Runs an entry on the shell, or follows it there (`resume`), to its end. */
  | { type: 'run'; entry: Entry; from: 'start' | 'resume' }
  /** Ends an entry without running it. */
  | { type: 'end'; entry: Entry; how: EndUnrun }
  /** The session has ended on this host. */
  | { type: 'left' };

export const LOOK: Step = { type: 'look' };
export const WAIT: Step = { type: 'wait' };
export const LEFT: Step = { type: 'left' };

/** Returns the step for a reply of the mailbox, or `ifEmpty` when nothing can be started. */
export function toStep(taken: Taken | Fenced, ifEmpty: Step): Step {
  switch (taken.type) {
    case 'empty':
      // The call that announces a close may have been lost.
      return taken.closing === true ? { type: 'check-close' } : ifEmpty;
    case 'fenced':
      return LOOK;
    case 'overdue':
      return { type: 'end', entry: taken.entry, how: finishOverdue };
    case 'needs-admission':
      return { type: 'decide', entry: taken.entry, opened: false };
    case 'started':
    // It was started by a call whose reply was lost.
    case 'running':
      return { type: 'taken', entry: taken.entry };
  }
}

/** Returns the step after the end of an entry: the entry that was started with it, if any. */
export function toStepAfter(finished: EntryFinished | Fenced): Step {
  return finished.type === 'finished' ? toStep(finished.next, finished.triedNext ? WAIT : LOOK) : LOOK;
}

/** Starts an entry that no shell of this host has begun. */
export function toStart(entry: Entry): Step {
  return { type: 'start', entry, orElse: finishNeverBegun };
}

/** Returns the end of an entry as lost. */
export const asLost =
  (reason: LossReason): EndUnrun =>
  (entry, ...of) =>
    finishLost(entry, reason, ...of);
