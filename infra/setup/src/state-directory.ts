import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Returns the directory for files of this user's fleet that are kept between two starts. */
export function stateDirectory(env: NodeJS.ProcessEnv): string {
  if (env.SHELLFLEET_STATE_DIR) return env.SHELLFLEET_STATE_DIR;
  return join(env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'shellfleet');
}

/** Returns the directory that all fleets of this user share. */
export function userStateDirectory(env: NodeJS.ProcessEnv): string {
  const { SHELLFLEET_STATE_DIR: _, ...shared } = env;
  return stateDirectory(shared);
}

export async function makeUserStateDirectory(env: NodeJS.ProcessEnv, ...names: string[]): Promise<string> {
  const { SHELLFLEET_STATE_DIR: _, ...shared } = env;
  return makeStateDirectory(shared, ...names);
}

/** Creates a directory inside the state directory that only this user can read. */
export async function makeStateDirectory(env: NodeJS.ProcessEnv, ...names: string[]): Promise<string> {
  const path = join(stateDirectory(env), ...names);
  await mkdir(path, { recursive: true, mode: 0o700 });
  return path;
}
