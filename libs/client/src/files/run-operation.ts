import { readSealedReply } from '@shellfleet/mailbox';
import {
  type FileOperation,
  fileReplySchema,
  fromWireError,
  onlyReads,
  parseOrThrow,
  ShellfleetError,
  type WireResult,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import type { Pending } from '../results/pending-results.ts';
import { openResult } from '../results/read-result.ts';
import type { OpenSession } from '../submit/open-session.ts';
import { type SubmitContext, sendEntry } from '../submit/send-entry.ts';
import type { DoneStep, FileSteps, SentStep } from './file-steps.ts';

/** Most steps of one operation that wait in the mailbox at the same time. */
const AHEAD = 4;

/** Returns steps that are mailbox entries, so that they keep their order among the commands. */
export function orderedSteps(context: SubmitContext, session: OpenSession): FileSteps {
  return { ahead: AHEAD, send: (operation) => sendOperation(context, session, operation) };
}

export async function sendOperation(
  context: SubmitContext,
  session: OpenSession,
  operation: FileOperation,
): Promise<SentStep> {
  const { pending } = await sendEntry(context, session, { type: 'file', operation });
  const what = `${operation.name} ${JSON.stringify(operation.path)} in session ${session.id}`;
  const hasReply = onlyReads(operation);
  return { reply: () => readReply(context, session, pending, what, hasReply) };
}

async function readReply(
  context: SubmitContext,
  session: OpenSession,
  pending: Pending,
  what: string,
  hasReply: boolean,
): Promise<DoneStep> {
  const wire = openResult(context.sealer, session.keys, pending.entryId, await pending.result());
  if (wire.outcome === 'denial')
    throw new ShellfleetError('FILE_DENIED', `The ${what} was not done. ${wire.stderr.trimEnd()}`, {
      reason: wire.reason,
    });
  throwUnlessDone(wire, what);
  const { epoch } = wire.shell;
  if (!hasReply) return { epoch };
  const sealed = await readSealedReply(context.redis, session.keys, pending.entryId);
  if (sealed === undefined) throw answerExpired(what);
  const place = sealPlace('reply', session.keys, pending.entryId);
  const opened = JSON.parse(context.sealer.open(sealed, place));
  return { ...parseOrThrow(fileReplySchema, opened, 'INTERNAL', `The answer to ${what}`), epoch };
}

function answerExpired(what: string): ShellfleetError {
  return new ShellfleetError(
    'RESULT_EXPIRED',
    `The answer is gone: ${what}. It was done more than an hour ago, or Redis has lost it. Read it again.`,
  );
}

/** Throws unless the entry succeeded. File operations and restarts have no exit code, so a failure is an error. */
export function throwUnlessDone(wire: WireResult, what: string): void {
  if (wire.outcome === 'success') return;
  if (wire.outcome === 'error') throw fromWireError(wire.error);
  if (wire.outcome === 'cancellation') {
    throw new ShellfleetError('SESSION_CLOSED', `Cancelled before it was done: ${what}. The session was closed.`);
  }
  if (wire.outcome === 'lost') {
    throw new ShellfleetError('SESSION_LOST', `Its host was lost, so it is not known whether this was done: ${what}.`);
  }
  throw new ShellfleetError('INTERNAL', `It ended as ${wire.outcome}: ${what}.`, { reason: wire.reason });
}
