import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Fleet, isShellfleetError } from '@shellfleet/client';
import { SCOPES } from '@shellfleet/protocol';

/** Returns the file with this user's API key, for programs such as curl. The connection file has the key as well. */
export function apiKeyPath(directory: string): string {
  return join(directory, 'api-key');
}

/** Returns the file with that key as a header, for `curl -H @FILE`: other users can list the arguments of a process. */
export function apiHeaderPath(directory: string): string {
  return join(directory, 'api-header');
}

/** Returns this user's API key for the fleet. Makes another if there is none, or none that the fleet accepts. */
export async function ensureApiKey(fleet: Fleet, directory: string): Promise<string> {
  const kept = (await readFile(apiKeyPath(directory), 'utf8').catch(() => '')).trim();
  const key = (await isAccepted(fleet, kept))
    ? kept
    : (await fleet.keys.create({ name: 'local', scopes: [...SCOPES] })).key;
  if (key !== kept) await writePrivately(apiKeyPath(directory), key);
  await writePrivately(apiHeaderPath(directory), `Authorization: Bearer ${key}\n`);
  return key;
}

async function writePrivately(path: string, text: string): Promise<void> {
  await writeFile(`${path}.${process.pid}`, text, { mode: 0o600 });
  await rename(`${path}.${process.pid}`, path);
}

async function isAccepted(fleet: Fleet, key: string): Promise<boolean> {
  try {
    return (await fleet.keys.find(key)) !== undefined;
  } catch (error) {
    // The fleet has other seal keys than the one that the key was made with.
    if (isShellfleetError(error) && error.code === 'SEAL_KEY_UNKNOWN') return false;
    throw error;
  }
}
