import { dirname } from 'node:path/posix';
import { type FileRecord, parseFileRecords } from '@shellfleet/keeper';
import {
  type FileAnswer,
  type FileInfo,
  type FileOperation,
  newResult,
  ShellfleetError,
  type StreamName,
} from '@shellfleet/protocol';
import type { SessionShell } from '../shell/session-shell.ts';
import type { FileFailure, FileStart } from '../shell/shell.ts';
import type { EntryResult, EntryRun } from './entry-run.ts';
import { resultBase, toErrorResult } from './results.ts';
import { runOnShell } from './run-on-shell.ts';
import type { SessionContext } from './session-context.ts';

const FILE_TIMEOUT_MS = 60_000;
/** A directory's listing is held in memory; one of more bytes is refused. */
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
    operation: toKeeperOperation(operation),
    timeoutMs: FILE_TIMEOUT_MS,
  };
  const end = await runOnShell(start, run, session, shell, {
    onOutput(stream, offset, bytes) {
      if (offset < received[stream]) return;
      // A gap occurs only in a listing over the limit, of which an earlier host has acknowledged a part.
      received[stream] = offset + bytes.byteLength;
      // Kept bytes are not acknowledged, so a host that adopts the shell receives all of them again. A listing over the limit is
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
      result: toErrorResult(toFileError(operation, end.end.fileFailure, Buffer.concat(parts.stderr).toString()), base),
      output: [],
    };
  }
  if (received.stdout > MOST_BYTES) {
    const error = new ShellfleetError(
      'FILE_TOO_LARGE',
      `The listing of ${operation.path} is larger than ${MOST_BYTES} bytes. List a smaller directory.`,
    );
    return { result: toErrorResult(error, base), output: [] };
  }
  const { timings, hostId } = base;
  const result = newResult(
    { outcome: 'success', exitCode: 0, reason: 'exited' },
    { shell: base.shell, timings, hostId },
  );
  return { result, output: [], answer: JSON.stringify(toAnswer(operation, parts)) };
}

function toKeeperOperation(operation: FileOperation): FileStart['operation'] {
  switch (operation.name) {
    case 'read':
      return { type: 'read', path: operation.path, offset: operation.offset, length: operation.length };
    case 'list':
      return { type: 'list', path: operation.path };
    case 'remove':
      return { type: 'remove', path: operation.path, recursive: true };
    case 'write': {
      const first = operation.offset === 0;
      const path = `${dirname(operation.path).replace(/\/$/, '')}/.shellfleet-${operation.transfer}.part`;
      const data = Buffer.from(operation.data, 'base64');
      return {
        type: 'write',
        path,
        offset: operation.offset,
        data,
        truncate: first,
        parents: first,
        ...(operation.last ? { renameTo: operation.path } : {}),
      };
    }
  }
}

function toAnswer(operation: FileOperation, parts: Record<StreamName, Uint8Array[]>): FileAnswer {
  const bytes = Buffer.concat(parts.stdout);
  if (operation.name === 'read')
    return { data: bytes.toString('base64'), size: Number(Buffer.concat(parts.stderr).toString()) };
  if (operation.name === 'list')
    return { entries: parseFileRecords(bytes).map((record) => toFileInfo(record, operation.path)) };
  return {};
}

function toFileInfo(record: FileRecord, directory: string): FileInfo {
  const { name, type, size, mode, modifiedMs } = record;
  const path = `${directory.replace(/\/$/, '')}/${name}`;
  return { name, path, type, size, mode, modifiedAt: new Date(modifiedMs).toISOString() };
}

const FAILURES: Record<FileFailure, { code: ConstructorParameters<typeof ShellfleetError>[0]; what: string }> = {
  'not-found': { code: 'FILE_NOT_FOUND', what: 'does not exist' },
  'is-directory': { code: 'FILE_IS_DIRECTORY', what: 'is a directory' },
  denied: { code: 'FILE_DENIED', what: 'may not be used so by the user of the sandbox' },
  'path-invalid': { code: 'PATH_INVALID', what: 'is not a usable path' },
  'too-large': { code: 'FILE_TOO_LARGE', what: 'is too large' },
  'no-space': { code: 'FILE_TOO_LARGE', what: 'does not fit: the sandbox has no space left' },
  'parts-missing': {
    code: 'CONTAINER_LOST',
    what: 'was not written: the sandbox was replaced meanwhile, with the parts that were there. Write it again',
  },
  other: { code: 'FILE_DENIED', what: 'could not be used' },
};

function toFileError(operation: FileOperation, failure: FileFailure | undefined, detail: string): ShellfleetError {
  const { code, what } = FAILURES[failure ?? 'other'];
  const text = detail.trim() === '' ? '' : ` (${detail.trim()})`;
  return new ShellfleetError(code, `${operation.path} ${what}${text}.`, {
    path: operation.path,
    operation: operation.name,
  });
}
