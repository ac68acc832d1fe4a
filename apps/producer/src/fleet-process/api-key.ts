import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Fleet, isShellfleetError } from '@shellfleet/client';
import { SCOPES } from '@shellfleet/protocol';

/** Returns the file with this user's API key, for programs such as curl. The connection file has the key as well. */
export function apiKeyPath(directory: string): string {
  return join(directory, 'api-key');
}

/** Returns this user's API key for the fleet. Makes another if there is none, or none that the fleet accepts. */
export async function ensureApiKey(fleet: Fleet, directory: string): Promise<string> {
  const path = apiKeyPath(directory);
  const kept = (await readFile(path, 'utf8').catch(() => '')).trim();
  if (await isAccepted(fleet, kept)) return kept;
  const { key } = await fleet.keys.create({ name: 'local', scopes: [...SCOPES] });
  await writeFile(`${path}.${process.pid}`, key, { mode: 0o600 });
  await rename(`${path}.${process.pid}`, path);
  return key;
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
