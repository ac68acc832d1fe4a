import { createHash } from 'node:crypto';

/**
 * Returns the folder of a host with a chosen id. It is a hash, because the path of a unix socket has at most 107 bytes.
 */
export function hostFolderName(hostId: string): string {
  return createHash('sha256').update(hostId).digest('hex').slice(0, 12);
}
