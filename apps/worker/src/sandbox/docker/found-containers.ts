import type { Docker } from '@shellfleet/vendor/dockerode';
import { isConflict, isEndedAlready, isNotFound, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';
import { fleetOf, parseLabels, type SandboxLabels } from './labels.ts';

/** Time limit on a removal. The next sweep repeats a removal that takes longer. */
const REMOVE_TIMEOUT_MS = 15_000;

/** Container that the engine lists and that some worker created. */
export type FoundContainer = Docker.ContainerInfo & { labels: SandboxLabels };

/** Lists the containers that have a certain label and the labels of a sandbox, in every state. */
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

/** Returns, once each, the ids of fleets whose containers have the label; '' for versions without fleet ids. */
export async function listFleets(engine: Engine, label: string): Promise<string[]> {
  const all = await engine.call((docker, abortSignal) =>
    docker.listContainers({ all: true, filters: { label: [label] }, abortSignal }),
  );
  return [...new Set(all.map(({ Labels }) => fleetOf(Labels)))].sort();
}

/** Returns which of the other hosts with these containers are gone. */
export async function findGoneHosts(
  containers: readonly FoundContainer[],
  ownHostId: string,
  isGone: (hostId: string) => Promise<boolean>,
): Promise<Set<string>> {
  const others = new Set(containers.map(({ labels }) => labels.hostId));
  others.delete(ownHostId);
  const gone = new Set<string>();
  for (const hostId of others) if (await isGone(hostId)) gone.add(hostId);
  return gone;
}

/** Removes a container and its volumes, whatever its state. Does nothing when it is gone or being removed. */
export async function removeContainer(engine: Engine, id: string, callTimeoutMs = REMOVE_TIMEOUT_MS): Promise<void> {
  const remove = () =>
    engine.call(
      (docker, abortSignal) => docker.getContainer(id).remove({ force: true, v: true, abortSignal }),
      Math.min(REMOVE_TIMEOUT_MS, callTimeoutMs),
    );
  await remove()
    .catch((error: unknown) => {
      if (!isEndedAlready(error)) throw error;
      return remove();
    })
    .catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw toShellfleetError(error, 'removing a container');
    });
}
