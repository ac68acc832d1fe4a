import { normalizePath, type OperationWords } from '@shellfleet/policy';
import type { FileOperation, PrefixRule, WrittenEntry } from '@shellfleet/protocol';

/** Returns the words of a file operation for the rules to compare, as one list per file. */
export function wordsOfFile(operation: FileOperation): OperationWords[] {
  const path = normalizePath(operation.path);
  const within = (name: string) => normalizePath(`${path}/${name}`);
  switch (operation.name) {
    case 'read':
    case 'stat':
      return [{ words: [`files.${operation.name}`, path], isSafe: true }];
    case 'list':
      return [{ words: ['files.list', path], isSafe: true, takesDirectory: operation.depth !== 1 }];
    case 'pack':
      return operation.names.map((name) => ({ words: ['files.read', within(name)], isSafe: true }));
    case 'write':
    case 'mkdir':
      return [{ words: [`files.${operation.name}`, path] }];
    case 'remove':
      return [{ words: ['files.remove', path], takesDirectory: true }];
    case 'rename': {
      const to = normalizePath(operation.to);
      const alsoStrict = [
        ['files.remove', path],
        ['files.write', to],
      ];
      return [{ words: ['files.rename', path, to], takesDirectory: true, alsoStrict }];
    }
    case 'chmod':
      return [chmod(path, operation.mode)];
    case 'unpack':
      return operation.entries.map((entry) => wordsOfEntry(entry, within(entry.name)));
  }
}

function wordsOfEntry({ kind, mode }: WrittenEntry, path: string): OperationWords {
  switch (kind) {
    case 'directory':
      // The mode also applies to a directory that exists.
      return { words: ['files.mkdir', path], alsoStrict: [chmod(path, mode).words] };
    case 'mode':
      return chmod(path, mode);
    case 'file':
    case 'symlink':
      return { words: ['files.write', path] };
  }
}

const chmod = (path: string, mode: number): OperationWords => ({ words: ['files.chmod', path, mode.toString(8)] });

/** Returns the pattern that allows this operation in the file's directory. Undefined for the root directory. */
export function directoryPattern(
  operation: FileOperation,
  asking: readonly OperationWords[],
): PrefixRule['pattern'] | undefined {
  const names = [...new Set(asking.map(({ words }) => words[0] ?? ''))];
  const directories = directoriesOf(operation);
  return directories.includes('/') ? undefined : [names.length === 1 ? (names[0] as string) : names, ...directories];
}

function directoriesOf(operation: FileOperation): string[] {
  const path = normalizePath(operation.path);
  if (operation.name === 'unpack' || operation.name === 'pack' || operation.name === 'list') return [path];
  const holding = (of: string) => normalizePath(`${of}/..`);
  return operation.name === 'rename' ? [holding(path), holding(normalizePath(operation.to))] : [holding(path)];
}
