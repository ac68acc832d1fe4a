import { type FileAnswer, type FileOperation, newResult, type WireResult } from '@shellfleet/protocol';

/** The files of a session of a mailbox host, and the received parts of files that are being written. */
export interface MemoryFiles {
  files: Map<string, Buffer>;
  parts: Map<string, Buffer[]>;
}

/** A file operation of a mailbox host. */
export function runFileInMemory(
  { files, parts }: MemoryFiles,
  operation: FileOperation,
): { result: WireResult; answer?: FileAnswer } {
  const { path } = operation;
  const missing = () => ({
    result: newResult({
      outcome: 'error',
      error: { code: 'FILE_NOT_FOUND', message: `There is no ${path}.`, retryable: false, context: { path } },
    }),
  });
  const done = newResult({ outcome: 'success', exitCode: 0, reason: 'exited' });
  switch (operation.name) {
    case 'read': {
      const data = files.get(path);
      if (data === undefined) return missing();
      const part = data.subarray(operation.offset, operation.offset + operation.length);
      return { result: done, answer: { data: part.toString('base64'), size: data.byteLength, mode: 0o644 } };
    }
    case 'write': {
      const list = [...(parts.get(operation.transfer) ?? []), Buffer.from(operation.data, 'base64')];
      parts.set(operation.transfer, list);
      if (operation.last) {
        files.set(path, Buffer.concat(list));
        parts.delete(operation.transfer);
      }
      return { result: done };
    }
    case 'list': {
      const records = [...files]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .filter(([name]) => name.startsWith(`${path.replace(/\/$/, '')}/`))
        .map(([name, data]) => ({ ...recordOf(data), name: name.split('/').at(-1) ?? '' }));
      return { result: done, answer: { records } };
    }
    case 'stat': {
      const data = files.get(path);
      if (data === undefined && path !== '/') return missing();
      return { result: done, answer: { records: [{ ...recordOf(data ?? Buffer.alloc(0)), name: path }] } };
    }
    case 'remove':
      return files.delete(path) ? { result: done } : missing();
    default:
      throw new Error(`Files in memory have no ${operation.name}.`);
  }
}

function recordOf(data: Buffer) {
  return { type: 'file' as const, size: data.byteLength, mode: 0o644, modifiedAt: new Date(0).toISOString() };
}
