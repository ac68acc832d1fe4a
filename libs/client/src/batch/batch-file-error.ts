import { ShellfleetError } from '@shellfleet/protocol';
import { isOfTheDisk } from '../files/disk-error.ts';

/** Returns an error that names a file of a batch. An error of another kind is returned unchanged. */
export function toBatchFileError(path: string, cause: unknown): unknown {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (cause instanceof ShellfleetError || code === undefined) return cause;
  const kind = code === 'ENOENT' ? 'FILE_NOT_FOUND' : 'FILE_DENIED';
  const step = isOfTheDisk(cause) ? ' Make room there, and continue the batch with the same file.' : '';
  return new ShellfleetError(kind, `${path} on this machine cannot be used: ${message}.${step}`, { path }, { cause });
}
