import { createHash } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { IMAGE_OWNER_FILE } from '@shellfleet/policy';
import { tryJson } from '@shellfleet/protocol';
import { makeUserStateFolder, stateFolder, userStateFolder } from '@shellfleet/setup';
import { z } from 'zod';
import { VERSION } from '../program-file.ts';

// Records the state folders of this user that own session images, because an image's name has only the owner's id.
//
// OWNER-1. A folder is recorded before an image gets its owner's name. Unrecorded owners are of another user or
//          machine.
// OWNER-2. Each folder has its own record. Two folders that were copied from each other have one owner.

const FOLDER = 'image-owners';
const recordSchema = z.object({ owner: z.string(), folder: z.string(), version: z.string() });

/** State folder and owner of images. `version` is that of the folder's last `up`. */
export type ImageOwner = z.infer<typeof recordSchema>;

/** Records the owner of image names. Without a writable state folder, the images count as used forever. */
export async function recordImageOwner(owner: string, env: NodeJS.ProcessEnv): Promise<void> {
  await writeRecord(owner, env).catch(() => {});
}

async function writeRecord(owner: string, env: NodeJS.ProcessEnv): Promise<void> {
  const folder = resolve(stateFolder(env));
  const path = join(await makeUserStateFolder(env, FOLDER), nameOf(folder));
  await writeFile(path, JSON.stringify({ owner, folder, version: VERSION } satisfies ImageOwner), { mode: 0o600 });
}

/** Reads the records of this user. */
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

/** Returns true if the folder is still that owner's, or cannot be read. */
export async function isStillOwner({ owner, folder }: ImageOwner): Promise<boolean> {
  try {
    return (await readFile(join(folder, IMAGE_OWNER_FILE), 'utf8')).trim() === owner;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

/** Forgets folders without their owner once no image has its name. */
export async function forgetImageOwners(namesThere: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  for (const recorded of await readImageOwners(env)) {
    const isNamed = namesThere.some((name) => name.endsWith(`-${recorded.owner}`));
    if (!isNamed && !(await isStillOwner(recorded)))
      await rm(join(userStateFolder(env), FOLDER, nameOf(recorded.folder)), { force: true });
  }
}

const nameOf = (folder: string) => `${createHash('sha256').update(folder).digest('hex').slice(0, 16)}.json`;
