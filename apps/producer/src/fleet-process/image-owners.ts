import { createHash } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { IMAGE_OWNER_FILE } from '@shellfleet/policy';
import { tryJson } from '@shellfleet/protocol';
import { makeUserStateDirectory, stateDirectory, userStateDirectory } from '@shellfleet/setup';
import { z } from 'zod';
import { VERSION } from '../program-file.ts';

// Records the state directories of this user that own session images, because an image's name has only the owner's id.
//
// OWNER-1. A directory is recorded before an image gets its owner's name. An owner without a record is another
//          user's or machine's.
// OWNER-2. Each directory has a separate record, because a directory and its copy have the same owner.

const DIRECTORY = 'image-owners';
const recordSchema = z.object({ owner: z.string(), directory: z.string(), version: z.string() });

/** State directory and owner of images. `version` is that of the directory's last `up`. */
export type ImageOwner = z.infer<typeof recordSchema>;

/** Records the owner of image names. Without a writable state directory, the images count as used forever. */
export async function recordImageOwner(owner: string, env: NodeJS.ProcessEnv): Promise<void> {
  await writeRecord(owner, env).catch(() => {});
}

async function writeRecord(owner: string, env: NodeJS.ProcessEnv): Promise<void> {
  const directory = resolve(stateDirectory(env));
  const path = join(await makeUserStateDirectory(env, DIRECTORY), nameOf(directory));
  await writeFile(path, JSON.stringify({ owner, directory, version: VERSION } satisfies ImageOwner), { mode: 0o600 });
}

/** Reads the records of this user. */
export async function readImageOwners(env: NodeJS.ProcessEnv): Promise<ImageOwner[]> {
  const directory = join(userStateDirectory(env), DIRECTORY);
  const names = await readdir(directory).catch(() => []);
  const records = await Promise.all(
    names.map(
      async (name) =>
        recordSchema.safeParse(tryJson(await readFile(join(directory, name), 'utf8').catch(() => ''))).data,
    ),
  );
  return records.filter((record) => record !== undefined);
}

/** Returns true if the directory is still that owner's, or cannot be read. */
export async function isStillOwner({ owner, directory }: ImageOwner): Promise<boolean> {
  try {
    return (await readFile(join(directory, IMAGE_OWNER_FILE), 'utf8')).trim() === owner;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

/** Forgets each directory that no longer has the recorded owner, once no image has that owner's name. */
export async function forgetImageOwners(namesThere: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  for (const recorded of await readImageOwners(env)) {
    const isNamed = namesThere.some((name) => name.endsWith(`-${recorded.owner}`));
    if (!isNamed && !(await isStillOwner(recorded)))
      await rm(join(userStateDirectory(env), DIRECTORY, nameOf(recorded.directory)), { force: true });
  }
}

const nameOf = (directory: string) => `${createHash('sha256').update(directory).digest('hex').slice(0, 16)}.json`;
