import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { IMAGE_OWNER_FILE, ownSessionImages, type SessionImages } from '@shellfleet/policy';
import { findDocker, listImagesOf, makeStateDirectory, stateDirectory } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';
import { recordImageOwner } from './image-owners.ts';

/** Returns the image names of this state directory and version. Records their owner first, for `prune`. */
export async function ensureOwnImageNames(env: NodeJS.ProcessEnv): Promise<SessionImages> {
  const owner = await ensureImageOwner(env);
  await recordImageOwner(owner, env);
  return ownSessionImages(VERSION, owner);
}

/** Returns the images of this state directory on this machine's engine, or none without an engine. */
export async function findOwnImages(env: NodeJS.ProcessEnv): Promise<string[]> {
  const owner = await readImageOwner(env);
  if (owner === undefined) return [];
  const engine = await findDocker(env);
  return engine === undefined ? [] : listImagesOf(owner, engine.endpoint).catch(() => []);
}

/** Returns the owner in this state directory's image names, if an `up` has used the directory. */
export async function readImageOwner(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const text = await readFile(join(stateDirectory(env), IMAGE_OWNER_FILE), 'utf8').catch(() => undefined);
  return text?.trim();
}

/** Returns the id that is in all image names of this state directory. Makes the id once, before Redis exists. */
async function ensureImageOwner(env: NodeJS.ProcessEnv): Promise<string> {
  const path = join(await makeStateDirectory(env), IMAGE_OWNER_FILE);
  await writeFile(path, randomBytes(4).toString('hex'), { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  return (await readFile(path, 'utf8')).trim();
}
