import { type FileOperation, newResult, ShellfleetError, type StreamName } from '@shellfleet/protocol';
import type { SessionShell } from '../shell/session-shell.ts';
import type { FileStart } from '../shell/shell.ts';
import type { EntryResult, EntryRun } from './entry-run.ts';
import { fileTimeoutMs, toFileAnswer, toFileError, toKeeperOperation } from './keeper-file.ts';
import { resultBase, toErrorResult } from './results.ts';
import { runOnShell } from './run-on-shell.ts';
import type { SessionContext } from './session-context.ts';

/** No answer is larger; a keeper that prints more is not believed. */
const MOST_BYTES = 3 << 20;

/** Has the keeper run a file operation as the sandbox's user. Its bytes arrive as stdout and are returned sealed, not streamed. */
export async function runFileOperation(
  run: EntryRun,
  operation: FileOperation,
  session: SessionContext,
  shell: SessionShell,
): Promise<EntryResult> {
  const { entry } = run;
  const base = resultBase(entry, session, shell);
  const parts: Record<StreamName, Uint8Array[]> = { stdout: [], stderr: [] };
  const received = { stdout: 0, stderr: 0 };
  const start: FileStart = {
    type: 'file',
    entryId: entry.id,
    operation: toKeeperOperation(operation, session.takesRealPaths(operation)),
    timeoutMs: fileTimeoutMs(operation),
  };
  const end = await runOnShell(start, run, session, shell, {
    onOutput(stream, offset, bytes) {
      if (offset < received[stream]) return;
      // A gap occurs only in an answer over the limit, of which an earlier host has acknowledged a part.
      received[stream] = offset + bytes.byteLength;
      // Kept bytes are not acknowledged, so a host that adopts the shell receives all of them again. An answer over the limit is
      // acknowledged, and refused below.
      if (received[stream] <= MOST_BYTES) parts[stream].push(Uint8Array.from(bytes));
      else shell.live?.ack(entry.id, stream, received[stream]);
    },
    received: () => ({ stdout: received.stdout, stderr: received.stderr }),
  });
  if (end.type !== 'ended') {
    const error =
      end.type === 'failed'
        ? end.error
        : new ShellfleetError(
            'CONTAINER_LOST',
            `The shell ended during the operation. Whether ${operation.path} was changed is not known.`,
          );
    return { result: toErrorResult(error, base), output: [] };
  }
  if (end.end.reason !== 'exited' || end.end.exitCode !== 0) {
    return {
      result: toErrorResult(toFileError(operation, end.end.fileFailure, Buffer.concat(parts.stderr)), base),
      output: [],
    };
  }
  if (received.stdout > MOST_BYTES) {
    const error = new ShellfleetError(
      'FILE_TOO_LARGE',
      `The answer about ${operation.path} is larger than ${MOST_BYTES} bytes.`,
    );
    return { result: toErrorResult(error, base), output: [] };
  }
  const { timings, hostId } = base;
  const result = newResult(
    { outcome: 'success', exitCode: 0, reason: 'exited' },
    { shell: base.shell, timings, hostId },
  );
  return {
    result,
    output: [],
    answer: JSON.stringify(toFileAnswer(operation, Buffer.concat(parts.stdout), Buffer.concat(parts.stderr))),
  };
}
