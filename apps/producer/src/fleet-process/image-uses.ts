import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hostDirectoryName } from '@shellfleet/sealing';
import { type ImageUses, isHostLocked, stateDirectory } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';
import { isAnyWorkerRunning, isSupervisorRunning, readFleetRecord } from './fleet-record.ts';
import { type ImageOwner, isStillOwner, readImageOwners } from './image-owners.ts';
import { readImageOwner } from './own-image-names.ts';

/** Reads from this user's state directories which images of `up` may be in use. All other images count as used. */
export async function readImageUses(env: NodeJS.ProcessEnv): Promise<ImageUses> {
  const directories = await Promise.all(
    [...(await readImageOwners(env)), ...(await readOwn(env))].map(readDirectoryUse),
  );
  return {
    whyUsed(version, owner) {
      const ofOwner = directories.filter((directory) => directory.owner === owner);
      if (ofOwner.length === 0)
        return `no state directory of this user is known to have the owner ${owner}: docker rmi it, when none uses it`;
      return ofOwner.map(({ whyUsed }) => whyUsed(version)).find((reason) => reason !== undefined);
    },
    isMaking: directories.some(({ isUp }) => isUp),
  };
}

interface DirectoryUse {
  owner: string;
  isUp: boolean;
  whyUsed(version: string): string | undefined;
}

/** Returns the directory of this environment, which has no record before this version's first `up`. */
async function readOwn(env: NodeJS.ProcessEnv): Promise<ImageOwner[]> {
  const owner = await readImageOwner(env);
  return owner === undefined ? [] : [{ owner, directory: resolve(stateDirectory(env)), version: VERSION }];
}

async function readDirectoryUse(recorded: ImageOwner): Promise<DirectoryUse> {
  const { owner, directory, version: last } = recorded;
  if (!(await isStillOwner(recorded))) return { owner, isUp: false, whyUsed: () => undefined };
  const record = await readFleetRecord({ SHELLFLEET_STATE_DIR: directory });
  const up = record !== undefined && (isSupervisorRunning(record) || isAnyWorkerRunning(record)) ? record : undefined;
  const others = await whyOthersMayUse(directory, up?.workers.flatMap(({ hostId }) => hostId ?? []) ?? []);
  return {
    owner,
    isUp: up !== undefined,
    whyUsed(version) {
      if (version === up?.version) return `the \`up\` that runs in ${directory} uses it`;
      if (version === last) return `the next \`up\` in ${directory} uses it`;
      return others;
    },
  };
}

/** Returns why workers that `up` did not start, or that are not ready, may use images of any version. */
async function whyOthersMayUse(directory: string, hostIdsOfUp: readonly string[]): Promise<string | undefined> {
  const hosts = join(directory, 'hosts');
  const names = await readdir(hosts).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? [] : undefined,
  );
  if (names === undefined) return `this user may not look into ${hosts}`;
  const defaultId = await readFile(join(hosts, 'default', 'id'), 'utf8').catch(() => '');
  const ofUp = hostIdsOfUp.map((id) => (id === defaultId.trim() ? 'default' : hostDirectoryName(id)));
  for (const name of names.filter((one) => !ofUp.includes(one)))
    if (await isHostLocked(join(hosts, name))) return `a worker that has ${join(hosts, name)} may use it`;
  return undefined;
}
