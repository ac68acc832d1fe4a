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
      return { result: done, answer: { data: part.toString('base64'), size: data.byteLength } };
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
      const entries = [...files]
        .filter(([name]) => name.startsWith(`${path.replace(/\/$/, '')}/`))
        .map(([name, data]) => ({
          name: name.split('/').at(-1) ?? '',
          path: name,
          type: 'file' as const,
          size: data.byteLength,
          mode: 0o644,
          modifiedAt: new Date(0).toISOString(),
        }));
      return { result: done, answer: { entries } };
    }
    case 'remove':
      return files.delete(path) ? { result: done } : missing();
  }
}
