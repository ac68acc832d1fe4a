import { readSealedAnswer, sealPlace } from '@shellfleet/mailbox';
import {
  type FileAnswer,
  type FileOperation,
  fileAnswerSchema,
  fromWireError,
  parseOrThrow,
  ShellfleetError,
  sandboxPathSchema,
  type WireResult,
} from '@shellfleet/protocol';
import { z } from 'zod';
import type { Pending } from '../results/pending-results.ts';
import type { OpenSession } from '../submit/open-session.ts';
import type { SubmitContext } from '../submit/send-entry.ts';
import { sendEntry } from '../submit/send-entry.ts';

/** An accepted step of a file operation. */
export interface SentOperation {
  answer(): Promise<DoneOperation>;
}

interface DoneOperation extends FileAnswer {
  /** Of the shell that it was done under: steps with different epochs may have seen different sandboxes. */
  epoch: number;
}

const pathSchema = z.object({ path: sandboxPathSchema });

export function parseSandboxPath(path: unknown): string {
  const shown = typeof path === 'string' ? JSON.stringify(path.slice(0, 200)) : typeof path;
  return parseOrThrow(pathSchema, { path }, 'PATH_INVALID', `The path ${shown}`).path;
}

/** Submits one step; resolves when it is accepted. */
export async function sendOperation(
  context: SubmitContext,
  session: OpenSession,
  operation: FileOperation,
): Promise<SentOperation> {
  const { pending } = await sendEntry(context, session, { type: 'file', operation });
  const what = `${operation.name} ${JSON.stringify(operation.path)} in session ${session.id}`;
  // The steps that write or remove return nothing.
  const hasAnswer = operation.name === 'read' || operation.name === 'list';
  return { answer: () => readAnswer(context, session, pending, what, hasAnswer) };
}

async function readAnswer(
  context: SubmitContext,
  session: OpenSession,
  pending: Pending,
  what: string,
  hasAnswer: boolean,
): Promise<DoneOperation> {
  const wire = await pending.result();
  throwUnlessDone(wire, what);
  const { epoch } = wire.shell;
  if (!hasAnswer) return { epoch };
  const sealed = await readSealedAnswer(context.redis, session.keys, pending.entryId);
  if (sealed === undefined) throw answerExpired(what);
  const place = sealPlace('answer', session.keys, pending.entryId);
  const opened = JSON.parse(context.sealer.open(sealed, place));
  return { ...parseOrThrow(fileAnswerSchema, opened, 'INTERNAL', `The answer to ${what}`), epoch };
}

function answerExpired(what: string): ShellfleetError {
  return new ShellfleetError(
    'RESULT_EXPIRED',
    `The answer is gone: ${what}. It was done more than an hour ago, or Redis has lost it. Read it again.`,
  );
}

/** Throws unless it succeeded: a file operation or restart has no exit code, so its failure is an error. */
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
