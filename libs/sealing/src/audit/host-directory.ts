import { createHash } from 'node:crypto';

/**
 * Returns the name of the directory of a host whose id was chosen. It is a hash, because the path of a unix socket has
 * at most 107 bytes.
 */
export function hostDirectoryName(hostId: string): string {
  return createHash('sha256').update(hostId).digest('hex').slice(0, 12);
}
