import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import type Docker from 'dockerode';
import type { Container } from '../api-server/pod-schema.ts';

export interface PulledImage {
  id: string;
  /** User of the image. Empty: root. */
  user: string;
}

/** Image of a container or of a volume. */
export type WantedImage = Pick<Container, 'image' | 'imagePullPolicy'>;

/** Reason and message with which a kubelet reports an image that it cannot use. */
export class ImageFailure extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

const name =
  /^(?:[a-zA-Z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

/** Finds the image of a container on the engine, and pulls it where the policy of the container says so. */
export async function ensureImage(docker: Docker, wanted: WantedImage): Promise<PulledImage> {
  const { image = '', imagePullPolicy } = wanted;
  if (!name.test(image)) {
    const why = `couldn't parse image name "${image}": invalid reference format`;
    throw new ImageFailure('InvalidImageName', `Failed to apply default image tag "${image}": ${why}`);
  }
  const found = imagePullPolicy === 'Always' ? undefined : await find(docker, image);
  if (found) return found;
  if (imagePullPolicy === 'Never')
    throw new ImageFailure('ErrImageNeverPull', `Container image "${image}" is not present with pull policy of Never`);
  await pull(docker, image).catch((error: Error) => {
    throw new ImageFailure('ErrImagePull', toMessage(image, error));
  });
  const pulled = await find(docker, image);
  if (!pulled) throw new ImageFailure('ErrImagePull', toMessage(image, new Error('not found')));
  return pulled;
}

/** Copies the files of an image into a directory, for a volume of the type image. */
export async function copyFiles(docker: Docker, image: string, directory: string, labels: Record<string, string>) {
  // The container is never started, so its command need not exist.
  const container = await docker.createContainer({ Image: image, Cmd: ['none'], Labels: labels });
  const files = await container.getArchive({ path: '/' });
  const tar = spawn('tar', ['--extract', '--directory', directory], { stdio: ['pipe', 'ignore', 'inherit'] });
  await Promise.all([pipeline(files, tar.stdin), once(tar, 'close')]);
  await container.remove({ force: true });
}

async function find(docker: Docker, image: string): Promise<PulledImage | undefined> {
  const details = await docker
    .getImage(image)
    .inspect()
    .catch(() => undefined);
  return details && { id: details.RepoDigests?.[0] ?? details.Id, user: details.Config.User };
}

async function pull(docker: Docker, image: string): Promise<void> {
  const withTag = /(?::[^/]+|@[^/]+)$/.test(image) ? image : `${image}:latest`;
  const progress = await docker.pull(withTag);
  await new Promise<void>((resolve, reject) =>
    docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve())),
  );
}

/** Writes a failure as containerd does. The engine's own words stand at the end. */
function toMessage(image: string, { message }: Error): string {
  const [, host] = /^([^/]*[.:][^/]*)\//.exec(image) ?? [];
  const whole = host === undefined ? `docker.io/${image.includes('/') ? image : `library/${image}`}` : image;
  const code = /not found|manifest unknown/i.test(message) ? 'NotFound' : 'Unknown';
  const words = message.replace(/^\(HTTP code \d+\) [^-]+ - /, '').trim();
  return `rpc error: code = ${code} desc = failed to pull and unpack image "${whole}": failed to resolve reference "${whole}": ${words}`;
}
