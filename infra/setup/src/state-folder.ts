import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Returns the folder for files of this user's fleet that are kept between two starts. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  if (env.SHELLFLEET_STATE_DIR) return env.SHELLFLEET_STATE_DIR;
  return join(env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'shellfleet');
}

/** Returns the folder that all fleets of this user share. */
export function userStateFolder(env: NodeJS.ProcessEnv): string {
  const { SHELLFLEET_STATE_DIR: _, ...shared } = env;
  return stateFolder(shared);
}

export async function makeUserStateFolder(env: NodeJS.ProcessEnv, ...names: string[]): Promise<string> {
  const { SHELLFLEET_STATE_DIR: _, ...shared } = env;
  return makeStateFolder(shared, ...names);
}

/** Creates a folder inside the state folder that only this user can read. */
export async function makeStateFolder(env: NodeJS.ProcessEnv, ...names: string[]): Promise<string> {
  const path = join(stateFolder(env), ...names);
  await mkdir(path, { recursive: true, mode: 0o700 });
  return path;
}
