import { hostname, userInfo } from 'node:os';

/** Returns `<user>@<machine>`, by which others see who answered or changed something. */
export function nameOfThisUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`.slice(0, 256);
  } catch {
    return `unknown@${hostname()}`.slice(0, 256); // a user without a name
  }
}
