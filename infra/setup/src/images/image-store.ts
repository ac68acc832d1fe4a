import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { connectDocker } from '../docker-client.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';

export async function hasImage(endpoint: DockerEndpoint, image: string): Promise<boolean> {
  const docker = await connectDocker(endpoint);
  try {
    await docker.getImage(image).inspect();
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Pulls an image. A registry that sends nothing for `silenceMs` counts as a failure. */
export async function pullImage(
  endpoint: DockerEndpoint,
  image: string,
  { silenceMs, signal }: { silenceMs: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const docker = await connectDocker(endpoint, silenceMs);
  const options = signal === undefined ? {} : { abortSignal: signal };
  await untilFinished(docker, await docker.pull(image, options));
}

export async function tagImage(endpoint: DockerEndpoint, image: string, alias: string): Promise<void> {
  const docker = await connectDocker(endpoint);
  await docker.getImage(image).tag(splitImage(alias));
}

/** Returns the engine's id of an image, which its content determines. */
export async function imageId(endpoint: DockerEndpoint, image: string): Promise<string> {
  const docker = await connectDocker(endpoint);
  return (await docker.getImage(image).inspect()).Id;
}

/** Writes an image under this name into a file, in the form that `docker load` and containerd import. */
export async function saveImage(endpoint: DockerEndpoint, image: string, path: string): Promise<void> {
  const docker = await connectDocker(endpoint);
  await pipeline(Readable.from(await docker.getImage(image).get()), createWriteStream(path));
}

/** Creates an image with one layer from a root file system. `changes` are Dockerfile instructions. */
export async function importImage(
  endpoint: DockerEndpoint,
  image: string,
  rootFilesystem: Readable,
  changes: string[],
  signal?: AbortSignal,
): Promise<void> {
  const docker = await connectDocker(endpoint);
  await sending(rootFilesystem, signal, async (abortSignal) =>
    untilFinished(docker, await docker.importImage(rootFilesystem, { ...splitImage(image), changes, abortSignal })),
  );
}

/** Builds an image from a context with a Dockerfile at `dockerfile`, without pulling. */
export async function buildImage(
  endpoint: DockerEndpoint,
  image: string,
  context: Readable,
  options: {
    dockerfile: string;
    buildArgs?: Record<string, string>;
    /** Platform of an image in which nothing runs during the build, such as linux/arm64. Default: the engine's. */
    platform?: string;
    signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const docker = await connectDocker(endpoint);
  const { dockerfile, buildArgs = {}, platform, signal } = options;
  await sending(context, signal, async (abortSignal) =>
    untilFinished(
      docker,
      await docker.buildImage(context, {
        t: image,
        dockerfile,
        buildargs: buildArgs,
        // The cache of the engine takes the same steps for another platform as the same image.
        ...(platform === undefined ? {} : { platform, nocache: true }),
        rm: true,
        forcerm: true,
        abortSignal,
      }),
    ),
  );
}

/** Sends a stream in a request. Fails with the stream's error, or when the signal aborts. */
async function sending(
  stream: Readable,
  outer: AbortSignal | undefined,
  request: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const abort = new AbortController();
  stream.once('error', (error) => abort.abort(error));
  const signal = outer === undefined ? abort.signal : AbortSignal.any([outer, abort.signal]);
  try {
    await request(signal);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}

/**
 * Reads the engine's progress messages to their end. Throws an error that a message reports, because the response has
 * status 200 even then.
 */
async function untilFinished(docker: Docker, progress: NodeJS.ReadableStream): Promise<void> {
  const events = await new Promise<{ error?: string }[]>((resolve, reject) => {
    docker.modem.followProgress(progress, (error, output) => (error ? reject(error) : resolve(output)));
  });
  const failed = events.find(({ error }) => error !== undefined);
  if (failed) throw new Error(failed.error);
}

function splitImage(image: string): { repo: string; tag: string } {
  const colon = image.lastIndexOf(':');
  return { repo: image.slice(0, colon), tag: image.slice(colon + 1) };
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'statusCode' in error && error.statusCode === 404;
}
