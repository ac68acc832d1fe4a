import { type Submission, submit } from '@shellfleet/mailbox';
import { ensureShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import type { Pending, PendingResults } from '../results/pending-results.ts';
import { type IndexContext, noteInIndex } from './note-in-index.ts';
import { type OpenContext, type OpenSession, reopenAfterLoss } from './open-session.ts';

export interface ResubmitContext extends IndexContext, OpenContext {
  readonly pending: PendingResults;
  ensureJob(session: OpenSession): Promise<void>;
}

/**
 * Submits a lost entry again under the same id. A host that has already begun the entry refuses it. `seal` seals the
 * entry for the new generation.
 */
export async function resubmit(
  context: ResubmitContext,
  session: OpenSession,
  pending: Pending,
  seal: () => Submission,
): Promise<void> {
  // Redis may have lost the index as well.
  session.indexedAt = 0;
  noteInIndex(context, session);
  let submitted = await submit(context.redis, session.keys, seal());
  if (submitted.type === 'unknown-session' || submitted.type === 'closed') {
    // If the shell is alive, its host declares this generation within seconds.
    await context.lost.noticed(session.keys, session.generation);
    submitted = await submit(context.redis, session.keys, seal());
  }
  if (submitted.type === 'unknown-session') {
    await reopenAfterLoss(context, session);
    submitted = await submit(context.redis, session.keys, seal());
  }
  if (submitted.type === 'accepted' || submitted.type === 'accepted-before') return context.ensureJob(session);
  if (submitted.type === 'deduplicated') return followInstead(context, session, pending, submitted.entryId);
  pending.settle({
    type: 'error',
    error: new ShellfleetError(
      'SESSION_LOST',
      `Redis lost command ${pending.commandId} and its session has ended since, so whether it ran is not known. Submit it again if that is safe.`,
      { commandId: pending.commandId },
    ),
  });
  context.pending.forget(pending);
}

/**
 * Settles the lost entry with the Result of another entry: the one with the same payload that was accepted under its
 * idempotency key after the loss.
 */
function followInstead(context: ResubmitContext, session: OpenSession, pending: Pending, entryId: string): void {
  const other = context.pending.expect(session.keys, entryId);
  other.accepted = true;
  other.result().then(
    (wire) => pending.settle({ type: 'result', wire }),
    (error: unknown) => pending.settle({ type: 'error', error: ensureShellfleetError(error) }),
  );
  context.pending.forget(pending);
}
