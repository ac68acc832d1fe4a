import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRunning, recordProcess } from '@shellfleet/setup';
import type Docker from 'dockerode';

/** Label of containers and networks. Its value names the process that made them. */
const LABEL = 'shellfleet.test-kubelet';
const DIRECTORY = 'sf-kubelet-';

const self = recordProcess(process.pid);
const owner = `${self.pid}-${self.startedAt}`;

export const ownLabels = (cluster: string) => ({ [LABEL]: owner, [`${LABEL}.cluster`]: cluster });

export const directoryOf = (cluster: string) =>
  join(tmpdir(), `${DIRECTORY}${owner.replaceAll(/\W+/g, '_')}-${cluster}`);

/** Removes everything of one cluster. */
export function removeCluster(docker: Docker, cluster: string): Promise<void> {
  return remove(docker, `${LABEL}.cluster=${cluster}`, () => true);
}

/** Removes what test runs have left that were killed. */
export async function removeLeftovers(docker: Docker): Promise<void> {
  await remove(docker, LABEL, (value) => !isAlive(value));
  for (const name of await readdir(tmpdir())) {
    const [, pid = ''] = new RegExp(`^${DIRECTORY}(\\d+)_`).exec(name) ?? [];
    // A directory of a living process with the number of a dead one is left to its own end.
    if (pid !== '' && !isProcess(Number(pid))) await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

async function remove(docker: Docker, label: string, isOurs: (value: string) => boolean): Promise<void> {
  const filters = { label: [label] };
  const containers = await docker.listContainers({ all: true, filters });
  await Promise.all(
    containers
      .filter(({ Labels }) => isOurs(Labels[LABEL] ?? ''))
      .map(({ Id }) => docker.getContainer(Id).remove({ force: true, v: true }).catch(ignoreGone)),
  );
  const networks = await docker.listNetworks({ filters });
  for (const { Id, Labels } of networks)
    if (isOurs(Labels?.[LABEL] ?? '')) await docker.getNetwork(Id).remove().catch(ignoreGone);
}

/** Another process may remove the same leftovers. */
function ignoreGone(error: { statusCode?: number }): void {
  if (![404, 409].includes(error.statusCode ?? 0)) throw error;
}

function isAlive(value: string): boolean {
  const [, pid = '0', startedAt = ''] = /^(\d+)-(.*)$/.exec(value) ?? [];
  return isRunning({ pid: Number(pid), startedAt }, ['']);
}

const isProcess = (pid: number) => recordProcess(pid).startedAt !== 'unknown';
