import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hostFolderName } from '@shellfleet/sealing';
import { type ImageUses, isHostLocked, stateFolder } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';
import { isAnyWorkerRunning, isSupervisorRunning, readFleetRecord } from './fleet-record.ts';
import { type ImageOwner, isStillOwner, readImageOwners } from './image-owners.ts';
import { readImageOwner } from './own-image-names.ts';

/** Reads from this user's state folders which images of `up` may be in use. All others count as used. */
export async function readImageUses(env: NodeJS.ProcessEnv): Promise<ImageUses> {
  const folders = await Promise.all([...(await readImageOwners(env)), ...(await readOwn(env))].map(readFolderUse));
  return {
    whyUsed(version, owner) {
      const ofOwner = folders.filter((folder) => folder.owner === owner);
      if (ofOwner.length === 0)
        return `no state folder of this user is known to have the owner ${owner}: docker rmi it, when none uses it`;
      return ofOwner.map(({ whyUsed }) => whyUsed(version)).find((reason) => reason !== undefined);
    },
    isMaking: folders.some(({ isUp }) => isUp),
  };
}

interface FolderUse {
  owner: string;
  isUp: boolean;
  whyUsed(version: string): string | undefined;
}

/** Returns the folder of this environment, which has no record before this version's first `up`. */
async function readOwn(env: NodeJS.ProcessEnv): Promise<ImageOwner[]> {
  const owner = await readImageOwner(env);
  return owner === undefined ? [] : [{ owner, folder: resolve(stateFolder(env)), version: VERSION }];
}

async function readFolderUse(recorded: ImageOwner): Promise<FolderUse> {
  const { owner, folder, version: last } = recorded;
  if (!(await isStillOwner(recorded))) return { owner, isUp: false, whyUsed: () => undefined };
  const record = await readFleetRecord({ SHELLFLEET_STATE_DIR: folder });
  const up = record !== undefined && (isSupervisorRunning(record) || isAnyWorkerRunning(record)) ? record : undefined;
  const others = await whyOthersMayUse(folder, up?.workers.flatMap(({ hostId }) => hostId ?? []) ?? []);
  return {
    owner,
    isUp: up !== undefined,
    whyUsed(version) {
      if (version === up?.version) return `the \`up\` that runs in ${folder} uses it`;
      if (version === last) return `the next \`up\` in ${folder} uses it`;
      return others;
    },
  };
}

/** Returns why workers that `up` did not start, or that are not ready, may use images of any version. */
async function whyOthersMayUse(folder: string, hostIdsOfUp: readonly string[]): Promise<string | undefined> {
  const hosts = join(folder, 'hosts');
  const names = await readdir(hosts).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? [] : undefined,
  );
  if (names === undefined) return `this user may not look into ${hosts}`;
  const defaultId = await readFile(join(hosts, 'default', 'id'), 'utf8').catch(() => '');
  const ofUp = hostIdsOfUp.map((id) => (id === defaultId.trim() ? 'default' : hostFolderName(id)));
  for (const name of names.filter((one) => !ofUp.includes(one)))
    if (await isHostLocked(join(hosts, name))) return `a worker that has ${join(hosts, name)} may use it`;
  return undefined;
}
