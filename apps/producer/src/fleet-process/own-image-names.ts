import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { IMAGE_OWNER_FILE, ownSessionImages, type SessionImages } from '@shellfleet/policy';
import { makeStateFolder } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';
import { recordImageOwner } from './image-owners.ts';

/** The names of this state folder's session images, of this version. Before an image gets them, `prune` can find out whose they are. */
export async function ensureOwnImageNames(env: NodeJS.ProcessEnv): Promise<SessionImages> {
  const owner = await ensureImageOwner(env);
  await recordImageOwner(owner, env);
  return ownSessionImages(VERSION, owner);
}

/** The id in the names of all session images of this state folder. It is made once, before any Redis is there. */
async function ensureImageOwner(env: NodeJS.ProcessEnv): Promise<string> {
  const path = join(await makeStateFolder(env), IMAGE_OWNER_FILE);
  await writeFile(path, randomBytes(4).toString('hex'), { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  return (await readFile(path, 'utf8')).trim();
}
