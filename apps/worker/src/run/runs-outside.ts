import type { Entry } from '@shellfleet/mailbox';
import { resolveSandbox } from '@shellfleet/policy';
import type { EntryPayload } from '@shellfleet/protocol';
import { openPayload } from './open-payload.ts';
import type { SessionContext } from './session-context.ts';

/** Whether an entry runs in the wider sandbox, if at all: a second attempt does, and a command that asks to leave the sandbox that it has. */
export function runsOutside(
  { first }: Pick<Entry, 'first'>,
  payload: EntryPayload,
  { spec }: Pick<SessionContext, 'spec'>,
): boolean {
  if (payload.type !== 'command') return false;
  return first !== undefined || (payload.escalate !== undefined && resolveSandbox(spec).sandboxed);
}

/** Of an entry that counts as running: the session's own shell has never begun it then. */
export function ranOutside(entry: Entry, session: SessionContext): boolean {
  if (entry.first !== undefined) return true;
  try {
    return runsOutside(entry, openPayload(entry, session), session);
  } catch {
    // It ends with that error where it is run.
    return false;
  }
}
