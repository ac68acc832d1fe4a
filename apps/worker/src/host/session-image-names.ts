import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { IMAGE_OWNER_FILE, ownSessionImages, type SessionImages } from '@shellfleet/policy';

/** Returns the image names of `full` and `slim` that `up` of this version uses for this state directory, if any. */
export async function readSessionImages(stateDirectory: string, version: string): Promise<SessionImages | undefined> {
  const owner = await readFile(join(stateDirectory, IMAGE_OWNER_FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  });
  return owner === undefined ? undefined : ownSessionImages(version, owner.trim());
}
