import { posix } from 'node:path';
import { ShellfleetError } from '@shellfleet/protocol';

/** Throws FILE_DENIED for a name of a copied directory that is not UTF-8, or does not lead below that directory. */
export function checkCopiedName(name: string, source: string): void {
  if (name.includes('\uFFFD')) throw notCopied(posix.join(source, name), 'has a name that is not UTF-8');
  if (!isPlain(name)) throw notCopied(`${source}/${name}`, 'is no name below that directory');
}

/** Tells whether a name has only plain parts: not empty, `.` or `..`, nor special on this machine. */
function isPlain(name: string): boolean {
  if (name.includes('\0') || (process.platform === 'win32' && /[\\:]/.test(name))) return false;
  return name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

/** Returns the error of something that cannot be copied, so that nothing of its directory is. */
export function notCopied(path: string, why: string): ShellfleetError {
  return new ShellfleetError('FILE_DENIED', `${path} ${why}, so the directory is not copied.`, { path });
}
