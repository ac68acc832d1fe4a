import { join } from 'node:path';
import type { Sandboxes } from '../sandbox.ts';
import { openSessionDirectories } from '../session-directory.ts';
import { Assignments } from './assignments.ts';
import { ContainerDisks } from './container-disks.ts';
import { HOSTS, HOSTS_FILE } from './container-options.ts';
import type { DiskBounds } from './disk-watch.ts';
import { DockerSandboxes, type DockerSandboxesOptions } from './docker-sandboxes.ts';
import { Engine } from './engine.ts';
import { HostImages } from './host-images.ts';

const USUAL_DISK: DiskBounds = { limitBytes: undefined, leastFreeBytes: undefined };

export async function createDockerSandboxes(options: DockerSandboxesOptions): Promise<Sandboxes> {
  const engine = new Engine(options.socketPath, options.logger, options.engineTimes);
  const directories = await openSessionDirectories(options.directory, options.keeperPath, { [HOSTS_FILE]: HOSTS });
  const { logger, allowances } = options;
  const disks = new ContainerDisks(engine, options.disk ?? USUAL_DISK, logger);
  const images = await HostImages.open({
    ...{ recordPath: `${options.directory}-images.json`, budget: {}, prepull: [], login: async () => undefined },
    ...options.images,
    ...{ engine, names: allowances, readSpace: () => disks.readSpace(), logger },
  });
  // Its name keeps it from the sweep of the sandboxes' directories.
  const assignments = await Assignments.open(join(options.directory, '.assigned'));
  return new DockerSandboxes({ engine, directories, assignments, disks, images }, options);
}
