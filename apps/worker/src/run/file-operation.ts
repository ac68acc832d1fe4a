import { setTimeout as delay } from 'node:timers/promises';
import { type FileOperation, type FileReply, isShellfleetError, newResult } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import type { EntryResult, EntryRun } from './entry-run.ts';
import { fileTimeoutMs, replyOf, stoppedOperation, toKeeperOperation } from './keeper-file.ts';
import { resultBase, toErrorResult } from './results.ts';
import { reconnect } from './run-on-shell.ts';
import type { SessionContext } from './session-context.ts';

const BUSY_POLL_MS = 50;
/** Most calls for one read, if the replies are lost. */
const MOST_READS = 5;

/** Runs an ordered file operation as a file call with the entry's id, so that the keeper begins it at most once. */
export async function runFileOperation(
  run: EntryRun,
  operation: FileOperation,
  session: SessionContext,
): Promise<EntryResult> {
  const base = resultBase(run.entry, session);
  try {
    const answer = JSON.stringify(await replyOfKeeper(run, operation, session));
    const { shell, timings, receipt, hostId } = base;
    const end = { outcome: 'success', exitCode: 0, reason: 'exited' } as const;
    return { result: newResult(end, { shell, timings, receipt, hostId }), output: [], answer };
  } catch (error) {
    if (!isShellfleetError(error)) throw error;
    return { result: toErrorResult(error, base), output: [] };
  } finally {
    run.onCancel(undefined);
  }
}

async function replyOfKeeper(run: EntryRun, operation: FileOperation, session: SessionContext): Promise<FileReply> {
  const { shell } = session;
  const toDo = toKeeperOperation(operation, session.takesRealPaths(operation));
  const timeoutMs = fileTimeoutMs(operation);
  let id = run.entry.id;
  let idleConnections = 0;
  run.onCancel(() => shell.live?.files.stop(id));
  for (let reads = 0; reads < MOST_READS; ) {
    if (shell.live === undefined) throw new Error('the session has no shell');
    const ended = shell.live.files.call(id, toDo, timeoutMs);
    if (run.isCancelled) shell.live.files.stop(id);
    const end = await ended;
    if (end.type === 'gone') {
      idleConnections += 1;
      const again = await reconnect(idleConnections, session);
      if (again.type === 'failed') throw again.error;
    } else if (end.type === 'busy') {
      idleConnections = 0;
      await delay(BUSY_POLL_MS);
    } else {
      const answer = replyOf(operation, end);
      if (answer !== undefined) return answer;
      if (run.isCancelled) break;
      // The keeper did this read for an earlier connection, and no longer has its answer.
      id = ulid();
      reads += 1;
    }
  }
  throw stoppedOperation(operation);
}
