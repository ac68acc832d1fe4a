import { createHash } from 'node:crypto';

/** The digest as `md5sum` prints it. Tests compare digests, so that a failure does not print long outputs. */
export function md5(bytes: Uint8Array | string): string {
  return createHash('md5').update(bytes).digest('hex');
}
