import { hostname, userInfo } from 'node:os';
import type { Caller } from '@shellfleet/protocol';

/** Returns the name by which others see who answered or changed something: the caller's, else `<user>@<machine>`. */
export function nameOfUser({ caller }: { caller?: Caller | undefined }): string {
  return caller?.name ?? nameOfThisUser();
}

/** Returns `<user>@<machine>`. */
export function nameOfThisUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`.slice(0, 256);
  } catch {
    return `unknown@${hostname()}`.slice(0, 256); // a user without a name
  }
}
