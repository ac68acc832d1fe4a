import { createHash } from 'node:crypto';

/**
 * Returns the name of a host's folder below `hosts` in its state folder. It is hashed: host ids may have 128
 * characters, and the path of a unix socket 107. Hosts whose id the operator did not choose use `default` instead.
 */
export function hostFolderName(hostId: string): string {
  return createHash('sha256').update(hostId).digest('hex').slice(0, 12);
}
