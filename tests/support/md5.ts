import { createHash } from 'node:crypto';

/** As `md5sum` says it: two outputs are compared without showing either. */
export function md5(bytes: Uint8Array | string): string {
  return createHash('md5').update(bytes).digest('hex');
}
