import { createHash } from 'node:crypto';

/**
 * The name of a host's folder below `hosts` in its state folder, for a host whose id the operator chose. The others have the folder `default`.
 * Host ids may be 128 characters long, and the path of a unix socket has 107.
 */
export function hostFolderName(hostId: string): string {
  return createHash('sha256').update(hostId).digest('hex').slice(0, 12);
}
