/** Errors of a disk that is full or fails, and of a process with too many open files. */
const OF_THE_DISK = ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE'];

/** Tells whether the disk of this machine has failed, which is no fault of the path. */
export function isOfTheDisk(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } };
  return OF_THE_DISK.includes(cause?.code ?? code ?? '');
}
