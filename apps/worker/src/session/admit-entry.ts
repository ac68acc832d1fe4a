import { clear, type Entry, type Fenced, hold, retryWhileRedisIsDown, type Taken } from '@shellfleet/mailbox';
import { ATTRIBUTES, ensureShellfleetError, toCommandId } from '@shellfleet/protocol';
import type { Verdict } from '../admission/admission.ts';
import { openPayload } from '../run/open-payload.ts';
import { finishDenied, finishFailed } from '../run/run-entry.ts';
import { aboutSession, type SessionParts } from './session-parts.ts';

// The step between the head of the mailbox and its start.
//
// ADMIT-1. An entry reaches the shell only when the session's admission admits it, and that is stored before it is started (`clear`).
// ADMIT-2. In a session whose digest is empty everything is admitted: the mailbox starts its entries without this step.
// ADMIT-3. A worker that dies within the step leaves the head as it was, held, started, or ended. The next one judges it only if it is as it was.
// ADMIT-4. An entry that cannot be judged is not started: it ends with the error.
// ADMIT-5. A verdict holds under the digest under which it was asked for. When the rules change meanwhile, the entry is judged again.

const EMPTY: Taken = { type: 'empty' };

/**
 * Judges the head of the mailbox, which is not started, and returns the entry that runs afterwards, if any. `makeReady` opens the shell;
 * it is called only for an admitted entry. `mayTakeNext`: whether the end of a denied entry may start the next one.
 */
export async function admitEntry(
  entry: Entry,
  parts: SessionParts,
  { makeReady, mayTakeNext }: { makeReady(): Promise<boolean>; mayTakeNext(): boolean },
): Promise<Taken | Fenced> {
  const { context, shell, admission } = parts;
  const { owner, signal } = context;
  const { digest } = admission;
  const ending = { entry, mayTakeNext };
  const verdict = await judge(entry, parts).catch(ensureShellfleetError);
  if (digest !== admission.digest) return EMPTY;
  if (verdict instanceof Error) return nextOf(await finishFailed(ending, verdict, context, shell));
  switch (verdict.type) {
    case 'admit': {
      if (!(await makeReady())) return EMPTY;
      // It starts the entry. The lease may have ended while the shell was opened.
      const mayStart = () => parts.lease.held() && digest === admission.digest;
      const clearHeld = async () => (mayStart() ? clear(owner, entry.id, digest) : EMPTY);
      const cleared = await retryWhileRedisIsDown(clearHeld, signal);
      return cleared.type === 'not-head' ? EMPTY : cleared;
    }
    case 'hold': {
      const request = { reason: context.redaction.value(verdict.question.reason) };
      const held = await retryWhileRedisIsDown(() => hold(owner, entry.id, digest, request), signal);
      context.logger.info({ [ATTRIBUTES.commandId]: toCommandId(owner.keys.session, entry.id) }, 'command.held');
      return held.type === 'fenced' ? held : EMPTY;
    }
    case 'deny':
      return nextOf(await finishDenied(ending, verdict.reason, context, shell));
  }
}

async function judge(entry: Entry, parts: SessionParts): Promise<Verdict> {
  const payload = openPayload(entry, parts.context);
  return parts.admission.judge({ ...aboutSession(parts), entryId: entry.id, payload, attempt: { number: 1 } });
}

function nextOf(finished: Awaited<ReturnType<typeof finishDenied>>): Taken | Fenced {
  if (finished.type === 'fenced') return finished;
  return finished.type === 'finished' ? finished.next : EMPTY;
}
