// Who the processes of a session are. A number says it plainly; a name means whatever the image says it means, which
// may be uid 0, so a name (and the image's own user) needs the operator's word as root does.

export const DEFAULT_USER = '1000:1000';

/** Asks for the user that the image names. */
const IMAGE_USER = 'image';

export interface SessionUser {
  /** As the engine takes it: `uid:gid` or a name; undefined is the image's own. */
  name: string | undefined;
  /** Owner of what the worker makes for the session. */
  owner: { uid: number; gid: number };
  /** What the operator must have allowed. */
  needs: 'root' | 'image' | undefined;
}

/** A uid alone gets itself as group: the engine would take the image's idea of it, or group 0. */
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
