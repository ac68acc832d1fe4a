import { randomBytes } from 'node:crypto';
import { chmod, link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hostIdSchema } from '@shellfleet/protocol';
import { hostDirectoryName } from '@shellfleet/sealing';
import { lockDirectory } from './directory-lock.ts';

// The state of a host that outlives its worker process: its id, its key, the directories of its sandboxes, and its
// logs.
//
// STATE-1. At most one process holds a directory. However that process dies, the kernel releases the lock.
// STATE-2. A key file is complete or absent, has mode 0600, and never changes.

export interface StateDirectory extends AsyncDisposable {
  hostId: string;
  hostKey: Buffer;
  /** Id of the directory that all hosts of this user share. It differs on other machines. */
  stateDirectoryId: string;
  /** Directory of keepers and their sockets; a short path. */
  sandboxes: string;
  /** File that records the images that this host pulled. */
  imageRecord: string;
  /** Directory of the policy `host`: records, keepers, workspaces. */
  hostSandboxes: string;
  bubblewrapSandboxes: string;
  codexSandboxes: string;
  logs: string;
  /** Directory with the ids of the entries and calls that this host began. */
  journal: string;
  audit: string;
  /** Directory of the files of the tasks of the detached batches that this host drives. */
  batches: string;
  /** Directory of the ids of the fleets that this host belongs to, a file for each namespace. */
  fleets: string;
  close(): Promise<void>;
}

/** Opens and locks the directory of a host. `given`: id that the operator chose for one of several workers. */
export async function openStateDirectory(stateDirectory: string, given: string | undefined): Promise<StateDirectory> {
  const path = join(stateDirectory, 'hosts', given === undefined ? 'default' : hostDirectoryName(given));
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
  const lock = await lockDirectory(path);
  const hostId =
    given ?? hostIdSchema.parse(await readOrCreate(join(path, 'id'), () => `host-${randomBytes(6).toString('hex')}`));
  const hostKey = Buffer.from(await readOrCreate(join(path, 'key'), () => randomBytes(32).toString('hex')), 'hex');
  const stateDirectoryId = await readOrCreate(join(stateDirectory, 'id'), () => randomBytes(8).toString('hex'));
  const close = () => lock.release();
  return {
    hostId,
    hostKey,
    stateDirectoryId,
    sandboxes: join(path, 's'),
    imageRecord: join(path, 'images.json'),
    hostSandboxes: join(path, 'h'),
    bubblewrapSandboxes: join(path, 'b'),
    codexSandboxes: join(path, 'c'),
    logs: join(path, 'logs'),
    journal: join(path, 'journal'),
    audit: join(path, 'audit'),
    batches: join(path, 'batches'),
    fleets: join(path, 'fleets'),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Returns the seal key that `up` or the first worker created for all processes of this user. */
export async function readSealKey(stateDirectory: string, make: () => string): Promise<string> {
  await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
  return readOrCreate(join(stateDirectory, 'seal-key'), make);
}

/** Reads or creates a file. Two processes that create it at the same time both read what the first one wrote. */
async function readOrCreate(path: string, make: () => string): Promise<string> {
  const known = await readIfThere(path);
  if (known !== undefined) return known;
  const draft = `${path}.${randomBytes(4).toString('hex')}`;
  try {
    await writeFile(draft, make(), { mode: 0o600, flag: 'wx' });
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  return (await readFile(path, 'utf8')).trim();
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
