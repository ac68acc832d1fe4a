import type { Entry } from '@shellfleet/mailbox';
import { resolveSandbox } from '@shellfleet/policy';
import type { EntryPayload } from '@shellfleet/protocol';
import { openPayload } from './open-payload.ts';
import type { SessionContext } from './session-context.ts';

/** Returns whether an entry would run in the wider sandbox: second attempts, and commands that ask to leave, do. */
export function runsOutside(
  { first }: Pick<Entry, 'first'>,
  payload: EntryPayload,
  { spec }: Pick<SessionContext, 'spec'>,
): boolean {
  if (payload.type !== 'command') return false;
  return first !== undefined || (payload.escalate !== undefined && resolveSandbox(spec).sandboxed);
}

/** Returns whether a running entry is in the wider sandbox, so that the session's own shell never began it. */
export function ranOutside(entry: Entry, session: SessionContext): boolean {
  if (entry.first !== undefined) return true;
  try {
    return runsOutside(entry, openPayload(entry, session), session);
  } catch {
    // The entry ends with this error where it is run.
    return false;
  }
}
