import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** User of the sessions of the policy `host`, and how a process changes to it. */
export interface HostUser {
  uid: number;
  gid: number;
  /** True for the worker's own user, in a user namespace of a worker without privileges. */
  isOurs: boolean;
}

export interface HostUserSettings {
  /** Name, uid, or uid:gid; undefined when the operator names none. */
  user: string | undefined;
  /** True when the operator accepts that sessions run as the worker's own user. */
  sharedUid: boolean;
}

/** Returns the user that the operator names. Throws with the reason when sessions must not or cannot run as it. */
export async function findHostUser(settings: HostUserSettings, ourUid: number, ourGid: number): Promise<HostUser> {
  const ours = { uid: ourUid, gid: ourGid };
  if (settings.user === undefined && !settings.sharedUid)
    throw new Error('its sessions need a user of their own: make one, and name it in SHELLFLEET_HOST_USER');
  const { uid, gid } = settings.user === undefined ? ours : await lookUp(settings.user);
  if (uid === 0 || gid === 0)
    throw new Error('its sessions never run as root: name another user in SHELLFLEET_HOST_USER');
  if (uid !== ourUid && ourUid !== 0)
    throw new Error(`this worker is not root (uid ${ourUid}), so it cannot run its sessions as uid ${uid}`);
  if (uid === ourUid && !settings.sharedUid) {
    throw new Error(
      `uid ${uid} is the worker's own, which owns the seal key and the password of Redis: name another user in SHELLFLEET_HOST_USER, or accept that with SHELLFLEET_HOST_SHARED_UID=1`,
    );
  }
  return uid === ourUid ? { ...ours, isOurs: true } : { uid, gid, isOurs: false };
}

/** Looks up a user. A uid without a gid gets its user's group on this host, else the gid of the same number. */
async function lookUp(user: string): Promise<{ uid: number; gid: number }> {
  const ids = /^([0-9]{1,9})(?::([0-9]{1,9}))?$/.exec(user);
  if (ids?.[2] !== undefined) return { uid: Number(ids[1]), gid: Number(ids[2]) };
  const gid = await idOf(user, '-g');
  if (ids) return { uid: Number(ids[1]), gid: gid ?? Number(ids[1]) };
  const uid = await idOf(user, '-u');
  if (uid === undefined || gid === undefined)
    throw new Error(`this host has no user ${user}: make it, or name another one in SHELLFLEET_HOST_USER`);
  return { uid, gid };
}

async function idOf(user: string, which: '-u' | '-g'): Promise<number | undefined> {
  const answer = await run('id', [which, '--', user]).catch(() => undefined);
  return answer === undefined ? undefined : Number(answer.stdout.trim());
}
