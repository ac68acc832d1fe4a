import type { Docker } from '@shellfleet/vendor/dockerode';
import { connectDocker } from '../docker-client.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { findImages, type ImageUses } from './find-images.ts';
import { ownerOf } from './owner-of.ts';

// Finds the containers, networks and image names that fleets have made on an engine, and their owners.
//
// LEFTOVER-1. A container has an owner while the state directory of its host keeps the identity of its fleet, because
//             that host adopts or removes it.
// LEFTOVER-2. A thing without a known owner counts as owned.

export interface Leftover {
  kind: 'container' | 'network' | 'image';
  id: string;
  name: string;
  namespace: string;
  /** Fleet that made the leftover. Undefined for names of images, and for versions without identities. */
  fleetId: string | undefined;
  /** True for a container that its host keeps for a post-mortem. */
  isKept: boolean;
  /** Directory below the state directory of the host that is mounted into the container. */
  mounted: string | undefined;
  /** Reason why the leftover may be in use, as the end of a sentence. Undefined if nobody owns it. */
  owner: string | undefined;
}

export interface LeftoverOptions {
  liveFleetIds: readonly string[];
  /** Namespace of the containers and networks. Default: all namespaces. */
  namespace?: string | undefined;
  /** Uses of session images. If they are given, unused images are found too. */
  images?: ImageUses | undefined;
}

/** Finds containers of fleets on this engine, their unused networks, and on request names of session images. */
export async function findLeftovers(endpoint: DockerEndpoint, options: LeftoverOptions): Promise<Leftover[]> {
  const docker = await connectDocker(endpoint, 30_000);
  const containers = await findContainers(docker, options);
  const networks = await findNetworks(docker, containers, options);
  const { namespace } = options;
  const ofFleets = [...containers, ...networks].filter((one) => namespace === undefined || one.namespace === namespace);
  const images = options.images === undefined ? [] : await findImages(docker, options.images);
  return [...ofFleets, ...images.map((image) => ({ ...image, ...WITHOUT_HOST, namespace: '', fleetId: undefined }))];
}

/** Removes a leftover. Returns false if it has come into use. */
export async function removeLeftover(endpoint: DockerEndpoint, { kind, id, name }: Leftover): Promise<boolean> {
  const docker = await connectDocker(endpoint, 30_000);
  const removal =
    kind === 'container'
      ? docker.getContainer(id).remove({ force: true, v: true })
      : kind === 'network'
        ? docker.getNetwork(id).remove()
        : // By its name: the image goes with its last one, unless a container has it by now.
          docker.getImage(name).remove();
  return removal.then(
    () => true,
    (error: { statusCode?: number }) => {
      if (error.statusCode === 409) return false;
      // Another process has removed it.
      if (error.statusCode !== 404) throw error;
      return true;
    },
  );
}

/** Prefix of the name of a container that a host keeps for a post-mortem. */
const KEPT_PREFIX = 'shellfleet-kept-';

async function findContainers(docker: Docker, { liveFleetIds }: LeftoverOptions): Promise<Leftover[]> {
  const all = await docker.listContainers({
    all: true,
    filters: { label: ['shellfleet.namespace', 'shellfleet.host'] },
  });
  return Promise.all(
    all.map(async ({ Id, Names, Labels, Mounts }) => {
      const fleetId = Labels['shellfleet.fleet'] || undefined;
      const mounted = Mounts.find(({ Destination }) => Destination === '/.shellfleet')?.Source;
      const owner = liveFleetIds.includes(fleetId ?? '') ? 'its fleet is up' : await ownerOf(fleetId, mounted);
      const name = (Names[0] ?? Id.slice(0, 12)).replace(/^\//, '');
      const namespace = Labels['shellfleet.namespace'] ?? '';
      const isKept = name.startsWith(KEPT_PREFIX);
      return { kind: 'container', id: Id, name, namespace, fleetId, isKept, mounted, owner };
    }),
  );
}

const WITHOUT_HOST = { isKept: false, mounted: undefined };

/** Finds networks without containers, which fleets make again when they need them. */
async function findNetworks(
  docker: Docker,
  containers: readonly Leftover[],
  { liveFleetIds }: LeftoverOptions,
): Promise<Leftover[]> {
  const all = await docker.listNetworks({ filters: { label: ['shellfleet.network=full'] } });
  const inspected = await Promise.all(
    all.map(({ Id }) =>
      docker
        .getNetwork(Id)
        .inspect()
        .catch(() => undefined),
    ),
  );
  return inspected.flatMap((network) => {
    if (network === undefined || Object.keys(network.Containers ?? {}).length > 0) return [];
    const fleetId = network.Labels?.['shellfleet.fleet'] || undefined;
    const isOwned =
      fleetId !== undefined &&
      (liveFleetIds.includes(fleetId) || containers.some((one) => one.fleetId === fleetId && one.owner !== undefined));
    const namespace = network.Labels?.['shellfleet.namespace'] ?? '';
    const owner = isOwned ? 'its fleet has containers or is up' : undefined;
    return [
      { ...WITHOUT_HOST, kind: 'network' as const, id: network.Id, name: network.Name, namespace, fleetId, owner },
    ];
  });
}
