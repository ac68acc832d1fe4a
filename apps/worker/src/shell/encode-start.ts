// The only place where an entry becomes the keeper's START message.
import { EntryKind, encodeCommand, encodeFile, encodeRestart, FileFlag } from '@shellfleet/keeper';
import { DEFAULTS } from '@shellfleet/protocol';
import type { FileOperation, ShellStart } from './shell.ts';

const NOTHING = new Uint8Array(0);

export function encodeStart(entry: ShellStart): { kind: number; payload: Uint8Array } {
  switch (entry.type) {
    case 'command': {
      const payload = encodeCommand({
        script: typeof entry.script === 'string' ? Buffer.from(entry.script) : entry.script,
        cwd: entry.cwd ?? '',
        env: entry.env ?? {},
        stdin: entry.stdin,
        timeoutMs: entry.timeoutMs ?? 0,
        noOutputTimeoutMs: entry.noOutputTimeoutMs ?? 0,
        killGraceMs: entry.killGraceMs ?? DEFAULTS.command.killGraceMs,
      });
      return { kind: EntryKind.command, payload };
    }
    case 'file':
      return {
        kind: EntryKind.file,
        payload: encodeFile({ ...toFilePayload(entry.operation), timeoutMs: entry.timeoutMs ?? 0 }),
      };
    case 'restart':
      return { kind: EntryKind.restart, payload: encodeRestart(entry.terminationTimeoutMs) };
  }
}

function toFilePayload(operation: FileOperation) {
  const plain = { noOutputTimeoutMs: 0, killGraceMs: 0, flags: 0, renameTo: '', offset: 0, length: 0, data: NOTHING };
  switch (operation.type) {
    case 'read':
      return {
        ...plain,
        operation: 'read' as const,
        path: operation.path,
        offset: operation.offset,
        length: operation.length,
      };
    case 'write': {
      const flags = (operation.truncate ? FileFlag.truncate : 0) | (operation.parents ? FileFlag.parents : 0);
      const { path, offset, data, renameTo = '' } = operation;
      return { ...plain, operation: 'write' as const, path, offset, data, renameTo, flags };
    }
    case 'list':
    case 'stat':
      return { ...plain, operation: operation.type, path: operation.path };
    case 'remove':
      return {
        ...plain,
        operation: 'remove' as const,
        path: operation.path,
        flags: operation.recursive ? FileFlag.recursive : 0,
      };
  }
}
