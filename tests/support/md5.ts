import { createHash } from 'node:crypto';

/** As `md5sum` prints it: compares two outputs without printing either. */
export function md5(bytes: Uint8Array | string): string {
  return createHash('md5').update(bytes).digest('hex');
}
