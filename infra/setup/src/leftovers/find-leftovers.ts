import type Docker from 'dockerode';
import { connectDocker } from '../docker-client.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { ownerOf } from './owner-of.ts';

// What fleets have made on an engine, and whose it is.
//
// LEFTOVER-1. A container is somebody's while the state folder of its host keeps the identity of its fleet: that host adopts or removes it.
// LEFTOVER-2. Where it cannot be known whose something is, it counts as somebody's.

export interface Leftover {
  kind: 'container' | 'network' | 'image';
  id: string;
  name: string;
  namespace: string;
  /** Undefined: made by a version without identities, or an image, which belongs to no fleet. */
  fleetId: string | undefined;
  /** A container that its host keeps for a post-mortem. */
  isKept: boolean;
  /** The folder of its host that is mounted into a container. */
  mounted: string | undefined;
  /** Why it is somebody's, the end of a sentence. Undefined: nobody owns it. */
  owner: string | undefined;
}

export interface LeftoverOptions {
  /** Of fleets that are known to be alive. */
  liveFleetIds: readonly string[];
  /** Only what is of this namespace, and images. Default: what is of any. */
  namespace?: string | undefined;
  /** Session images too. */
  images: boolean;
}

/** What fleets have made on this engine: their containers, the networks that no container has, and on request images that none has. */
export async function findLeftovers(endpoint: DockerEndpoint, options: LeftoverOptions): Promise<Leftover[]> {
  const docker = await connectDocker(endpoint, 30_000);
  const containers = await findContainers(docker, options);
  const networks = await findNetworks(docker, containers, options);
  const { namespace } = options;
  const ofFleets = [...containers, ...networks].filter((one) => namespace === undefined || one.namespace === namespace);
  return [...ofFleets, ...(await findImages(docker, options))];
}

export async function removeLeftover(endpoint: DockerEndpoint, { kind, id }: Leftover): Promise<void> {
  const docker = await connectDocker(endpoint, 30_000);
  const removal =
    kind === 'container'
      ? docker.getContainer(id).remove({ force: true, v: true })
      : kind === 'network'
        ? docker.getNetwork(id).remove()
        : docker.getImage(id).remove({ force: true });
  await removal.catch((error: { statusCode?: number }) => {
    // Somebody else has removed it.
    if (error.statusCode !== 404) throw error;
  });
}

/** The beginning of the name that a host gives a container when it keeps it for a post-mortem. */
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

/** Those that no container has: a fleet makes its network anew when it needs it. */
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

const SESSION_IMAGE = 'shellfleet/session:';
/** An image under the hash of its recipe alone: a state folder of `up` names what it uses. */
const CONTENT_TAG = /^shellfleet\/session:[0-9a-f]{12}$/;

/** Session images that no container has. Another name than the content's is that of a fleet's `up`, which may use it for its next session. */
async function findImages(docker: Docker, { images }: LeftoverOptions): Promise<Leftover[]> {
  if (!images) return [];
  const used = new Set((await docker.listContainers({ all: true })).map(({ ImageID }) => ImageID));
  const all = await docker.listImages({ filters: { reference: ['shellfleet/session'] } });
  return all.flatMap(({ Id, RepoTags }) => {
    const names = (RepoTags ?? []).filter((name) => name.startsWith(SESSION_IMAGE));
    if (used.has(Id)) return [];
    const named = names.find((name) => !CONTENT_TAG.test(name));
    const owner =
      named === undefined ? undefined : `an \`up\` has named it ${named}: docker rmi ${named}, when none uses it`;
    return [{ ...WITHOUT_HOST, kind: 'image', id: Id, name: names[0] ?? Id, namespace: '', fleetId: undefined, owner }];
  });
}
