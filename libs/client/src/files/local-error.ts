import { ShellfleetError } from '@shellfleet/protocol';

type FileCode = 'FILE_NOT_FOUND' | 'FILE_IS_DIRECTORY' | 'FILE_DENIED' | 'PATH_INVALID';

const codes: Record<string, FileCode> = {
  ENOENT: 'FILE_NOT_FOUND',
  EISDIR: 'FILE_IS_DIRECTORY',
  ENOTDIR: 'PATH_INVALID',
  ENAMETOOLONG: 'PATH_INVALID',
  EACCES: 'FILE_DENIED',
  EPERM: 'FILE_DENIED',
};

export function toLocalError(localPath: string, error: unknown): unknown {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  return new ShellfleetError(
    codes[code ?? ''] ?? 'FILE_DENIED',
    `${localPath} on this machine: ${message}.`,
    { path: localPath },
    { cause: error },
  );
}

export function localDenied(localPath: string, why: string, code: FileCode = 'FILE_DENIED'): ShellfleetError {
  return new ShellfleetError(code, `${localPath} on this machine ${why}.`, { path: localPath });
}
