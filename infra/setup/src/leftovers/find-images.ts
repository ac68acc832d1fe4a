import type { Docker } from '@shellfleet/vendor/dockerode';
import { connectDocker } from '../docker-client.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';

// IMAGE-LEFTOVER-1. Names of an image are removed one by one. A layer goes with the last name that needs it.

export interface ImageUses {
  /** Returns why `slim-VERSION-OWNER` may be in use, as the end of a sentence, or undefined. */
  whyUsed(version: string, owner: string): string | undefined;
  /** True while an `up` may be making an image. Until the image is complete, its only name is that of its content. */
  isMaking: boolean;
}

interface FoundImage {
  kind: 'image';
  id: string;
  name: string;
  owner: string | undefined;
}

const REPOSITORY = 'shellfleet/session:';
/** Tag that names an image by its content: the hash of its recipe. */
const CONTENT = /^[0-9a-f]{12}$/;
/** Tag that `up` gives an image for its workers: variant, version and owner. */
const OF_UP = /^(?:slim|full)-(.+)-([0-9a-f]{8})$/;

/** Returns the names of an owner's session images, of all versions. */
export async function listImagesOf(owner: string, endpoint: DockerEndpoint): Promise<string[]> {
  const docker = await connectDocker(endpoint, 5_000);
  const all = await docker.listImages({ filters: { reference: ['shellfleet/session'] } });
  const names = all.flatMap(({ RepoTags }) => RepoTags ?? []);
  return names.filter((name) => OF_UP.exec(name.slice(REPOSITORY.length))?.[2] === owner).sort();
}

export async function findImages(docker: Docker, uses: ImageUses): Promise<FoundImage[]> {
  const running = new Set((await docker.listContainers({ all: true })).map(({ ImageID }) => ImageID));
  const all = await docker.listImages({ filters: { reference: ['shellfleet/session'] } });
  return all.flatMap(({ Id, RepoTags }) => {
    const names = (RepoTags ?? []).filter((name) => name.startsWith(REPOSITORY));
    const toFound = (name: string, owner: string | undefined) => ({ kind: 'image' as const, id: Id, name, owner });
    if (running.has(Id)) return names.map((name) => toFound(name, 'a container uses it'));
    const contents = names.filter((name) => CONTENT.test(name.slice(REPOSITORY.length)));
    const named = names
      .filter((name) => !contents.includes(name))
      .map((name) => toFound(name, whyNameStays(name, uses)));
    const staying = named.find(({ owner }) => owner !== undefined)?.name;
    const ofContent = staying === undefined ? whyContentStays(uses) : `it is ${staying}`;
    return [...named, ...contents.map((name) => toFound(name, ofContent))];
  });
}

function whyNameStays(name: string, { whyUsed }: ImageUses): string | undefined {
  const [, version, owner] = OF_UP.exec(name.slice(REPOSITORY.length)) ?? [];
  if (version === undefined || owner === undefined)
    return `no \`up\` has named it so: docker rmi ${name}, when none uses it`;
  return whyUsed(version, owner);
}

const whyContentStays = ({ isMaking }: ImageUses) => (isMaking ? 'an `up` that runs may be making it' : undefined);
