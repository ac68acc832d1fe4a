import { clear, type Entry, type Fenced, hold, retryWhileRedisIsDown, type Taken } from '@shellfleet/mailbox';
import { ATTRIBUTES, ensureShellfleetError, toCommandId } from '@shellfleet/protocol';
import { openPayload } from '../run/open-payload.ts';
import { finishDenied, finishFailed } from '../run/run-entry.ts';
import type { Admission, Verdict } from './admission.ts';
import type { SessionParts } from './session-parts.ts';

// The step between the head of the mailbox and its start.
//
// ADMIT-1. An entry reaches the shell only when the host's rules admit it, and that is stored before it is started (`clear`).
// ADMIT-2. A host whose digest is empty admits everything: the mailbox starts its entries without this step.
// ADMIT-3. A worker that dies within the step leaves the head as it was, held, started, or ended. The next one judges it only if it is as it was.
// ADMIT-4. An entry that cannot be judged is not started: it ends with the error.

const EMPTY: Taken = { type: 'empty' };

/**
 * Judges the head of the mailbox, which is not started, and returns the entry that runs afterwards, if any. `makeReady` opens the shell;
 * it is called only for an admitted entry. `mayTakeNext`: whether the end of a denied entry may start the next one.
 */
export async function admitEntry(
  entry: Entry,
  admission: Admission,
  parts: SessionParts,
  { makeReady, mayTakeNext }: { makeReady(): Promise<boolean>; mayTakeNext(): boolean },
): Promise<Taken | Fenced> {
  const { context, shell } = parts;
  const { owner, signal } = context;
  const ending = { entry, mayTakeNext };
  const verdict = await judge(entry, admission, parts).catch(ensureShellfleetError);
  if (verdict instanceof Error) return nextOf(await finishFailed(ending, verdict, context, shell));
  switch (verdict.type) {
    case 'admit': {
      if (!(await makeReady())) return EMPTY;
      // It starts the entry. The lease may have ended while the shell was opened.
      const clearHeld = async () => (parts.lease.held() ? clear(owner, entry.id, admission.digest) : EMPTY);
      const cleared = await retryWhileRedisIsDown(clearHeld, signal);
      return cleared.type === 'not-head' ? EMPTY : cleared;
    }
    case 'hold': {
      const request = { reason: context.redaction.value(verdict.reason) };
      const held = await retryWhileRedisIsDown(() => hold(owner, entry.id, admission.digest, request), signal);
      context.logger.info({ [ATTRIBUTES.commandId]: toCommandId(owner.keys.session, entry.id) }, 'command.held');
      return held.type === 'fenced' ? held : EMPTY;
    }
    case 'deny':
      return nextOf(await finishDenied(ending, verdict.reason, context, shell));
  }
}

async function judge(entry: Entry, admission: Admission, { context }: SessionParts): Promise<Verdict> {
  const { tenant, session } = context.owner.keys;
  return admission.judge({ tenant, session, entryId: entry.id, payload: openPayload(entry, context) });
}

function nextOf(finished: Awaited<ReturnType<typeof finishDenied>>): Taken | Fenced {
  if (finished.type === 'fenced') return finished;
  return finished.type === 'finished' ? finished.next : EMPTY;
}
