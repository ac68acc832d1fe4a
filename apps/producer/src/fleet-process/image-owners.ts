import { createHash } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { IMAGE_OWNER_FILE } from '@shellfleet/policy';
import { tryJson } from '@shellfleet/protocol';
import { makeUserStateFolder, stateFolder, userStateFolder } from '@shellfleet/setup';
import { z } from 'zod';
import { VERSION } from '../program-file.ts';

// Which state folders of this user have names for session images: a name has an owner's id alone, from which no folder
// can be found.
//
// OWNER-1. A folder is recorded before an image gets a name of its owner, so a name whose owner is not recorded is
//          another user's, or another machine's.
// OWNER-2. Each folder has a record of its own: two that were copied from each other have one owner.

const FOLDER = 'image-owners';
const recordSchema = z.object({ owner: z.string(), folder: z.string(), version: z.string() });

/** A state folder and the owner in the names of its images. `version` is that of the `up` that used the folder last. */
export type ImageOwner = z.infer<typeof recordSchema>;

/**
 * Records the owner of image names. Where no state folder of the user can be written, the images count as used forever.
 */
export async function recordImageOwner(owner: string, env: NodeJS.ProcessEnv): Promise<void> {
  await writeRecord(owner, env).catch(() => {});
}

async function writeRecord(owner: string, env: NodeJS.ProcessEnv): Promise<void> {
  const folder = resolve(stateFolder(env));
  const path = join(await makeUserStateFolder(env, FOLDER), nameOf(folder));
  await writeFile(path, JSON.stringify({ owner, folder, version: VERSION } satisfies ImageOwner), { mode: 0o600 });
}

/** What this user has recorded. */
export async function readImageOwners(env: NodeJS.ProcessEnv): Promise<ImageOwner[]> {
  const folder = join(userStateFolder(env), FOLDER);
  const names = await readdir(folder).catch(() => []);
  const records = await Promise.all(
    names.map(
      async (name) => recordSchema.safeParse(tryJson(await readFile(join(folder, name), 'utf8').catch(() => ''))).data,
    ),
  );
  return records.filter((record) => record !== undefined);
}

/** Whether the folder is still that owner's. A folder that this user may not look into is. */
export async function isStillOwner({ owner, folder }: ImageOwner): Promise<boolean> {
  try {
    return (await readFile(join(folder, IMAGE_OWNER_FILE), 'utf8')).trim() === owner;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

/** Forgets the folders that are an owner's no more, of which no image has a name any more. */
export async function forgetImageOwners(namesThere: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  for (const recorded of await readImageOwners(env)) {
    const isNamed = namesThere.some((name) => name.endsWith(`-${recorded.owner}`));
    if (!isNamed && !(await isStillOwner(recorded)))
      await rm(join(userStateFolder(env), FOLDER, nameOf(recorded.folder)), { force: true });
  }
}

const nameOf = (folder: string) => `${createHash('sha256').update(folder).digest('hex').slice(0, 16)}.json`;
