import type { Docker } from '@shellfleet/vendor/dockerode';
import { isConflict, isNotFound, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';
import { fleetOf, parseLabels, type SandboxLabels } from './labels.ts';

/** A removal that takes longer is left to the next sweep: nobody waits for it. */
const REMOVE_TIMEOUT_MS = 15_000;

/** A container that the engine lists, and that some worker has made. */
export type FoundContainer = Docker.ContainerInfo & { labels: SandboxLabels };

/** All containers with a label, in whatever state, that have the labels of a sandbox. */
export async function listContainers(engine: Engine, label: string): Promise<FoundContainer[]> {
  const all = await engine
    .call((docker, abortSignal) => docker.listContainers({ all: true, filters: { label: [label] }, abortSignal }))
    .catch((error: unknown) => {
      throw toShellfleetError(error, 'listing containers');
    });
  return all.flatMap((container) => {
    const labels = parseLabels(container.Labels);
    return labels === undefined ? [] : [{ ...container, labels }];
  });
}

/** The fleets that have containers with a label, once each; empty for a version without identities. */
export async function listFleets(engine: Engine, label: string): Promise<string[]> {
  const all = await engine.call((docker, abortSignal) =>
    docker.listContainers({ all: true, filters: { label: [label] }, abortSignal }),
  );
  return [...new Set(all.map(({ Labels }) => fleetOf(Labels)))].sort();
}

/** Removes a container, with its volumes, whatever its state. Does nothing when it is gone or is being removed. */
export async function removeContainer(engine: Engine, id: string, callTimeoutMs = REMOVE_TIMEOUT_MS): Promise<void> {
  await engine
    .call(
      (docker, abortSignal) => docker.getContainer(id).remove({ force: true, v: true, abortSignal }),
      Math.min(REMOVE_TIMEOUT_MS, callTimeoutMs),
    )
    .catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw toShellfleetError(error, 'removing a container');
    });
}
