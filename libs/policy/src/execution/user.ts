import { DEFAULTS } from '@shellfleet/protocol';

// Only the image determines which uid a user name has, which may be 0. So a user name needs the permission of the
// operator, as root does.

export const DEFAULT_USER = DEFAULTS.session.user;

const IMAGE_USER = 'image';

export interface SessionUser {
  /** `uid:gid` or a name, as the engine takes it. Undefined: the image's own user. */
  name: string | undefined;
  /** Owner of the files that the worker creates for the session. */
  owner: { uid: number; gid: number };
  /** The permission that the operator must have given. */
  needs: 'root' | 'image' | undefined;
}

/**
 * Parses a user. A uid alone gets the gid of the same number, because the engine would otherwise use the image's choice
 * or group 0.
 */
export function toSessionUser(user: string): SessionUser {
  const owner = { uid: 1000, gid: 1000 };
  if (user === IMAGE_USER) return { name: undefined, owner, needs: 'image' };
  const ids = /^([0-9]+)(?::([0-9]+))?$/.exec(user);
  if (!ids) return { name: user, owner, needs: user.split(':').some(isRoot) ? 'root' : 'image' };
  const uid = Number(ids[1]);
  const gid = Number(ids[2] ?? ids[1]);
  return { name: `${uid}:${gid}`, owner: { uid, gid }, needs: uid === 0 || gid === 0 ? 'root' : undefined };
}

function isRoot(part: string): boolean {
  return part === 'root' || /^0+$/.test(part);
}
