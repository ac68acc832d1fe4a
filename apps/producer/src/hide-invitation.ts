import { fchmodSync, fstatSync } from 'node:fs';

const STDOUT = 1;

/** Makes the file that takes an invitation private. The shell has just made it, perhaps readable by everybody. */
export function hideInvitation(): void {
  if (fstatSync(STDOUT).isFile()) fchmodSync(STDOUT, 0o600);
}
