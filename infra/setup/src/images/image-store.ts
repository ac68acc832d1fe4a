import type { Readable } from 'node:stream';
import { callDocker, type DockerAnswer, type DockerEndpoint } from '../docker-endpoint.ts';

// The few things set-up does with images. Long answers of the engine are streams of JSON lines, and an error in the
// middle of one comes with status 200.

export async function hasImage(endpoint: DockerEndpoint, image: string): Promise<boolean> {
  const answer = await callDocker(endpoint, { path: `/images/${encodeURIComponent(image)}/json` });
  return answer.status === 200;
}

/** Pulls an image; `silenceMs` without a word from the registry counts as a failure. */
export async function pullImage(endpoint: DockerEndpoint, image: string, silenceMs: number): Promise<void> {
  const query = new URLSearchParams({ fromImage: image });
  const path = `/images/create?${query}`;
  throwOnError(await callDocker(endpoint, { method: 'POST', path, idleTimeoutMs: silenceMs }), `pull of ${image}`);
}

/** Gives an image one more name. */
export async function tagImage(endpoint: DockerEndpoint, image: string, alias: string): Promise<void> {
  const query = new URLSearchParams(splitImage(alias));
  const path = `/images/${encodeURIComponent(image)}/tag?${query}`;
  throwOnError(await callDocker(endpoint, { method: 'POST', path }), `tag of ${image}`);
}

/** Makes an image with one layer out of a root filesystem. `changes` are Dockerfile instructions. */
export async function importImage(
  endpoint: DockerEndpoint,
  image: string,
  rootFilesystem: Readable,
  changes: string[],
): Promise<void> {
  const query = new URLSearchParams({ fromSrc: '-', ...splitImage(image) });
  for (const change of changes) query.append('changes', change);
  const contentType = 'application/x-tar';
  const call = { method: 'POST', path: `/images/create?${query}`, body: rootFilesystem, contentType };
  throwOnError(await callDocker(endpoint, call), `import of ${image}`);
}

/** Builds an image from a context with a Dockerfile at `dockerfile`; nothing is pulled. */
export async function buildImage(
  endpoint: DockerEndpoint,
  image: string,
  context: Readable,
  options: { dockerfile: string; buildArgs: Record<string, string> },
): Promise<void> {
  const { dockerfile, buildArgs } = options;
  const query = new URLSearchParams({
    t: image,
    dockerfile,
    buildargs: JSON.stringify(buildArgs),
    rm: '1',
    forcerm: '1',
  });
  const call = { method: 'POST', path: `/build?${query}`, body: context, contentType: 'application/x-tar' };
  throwOnError(await callDocker(endpoint, call), `build of ${image}`);
}

function splitImage(image: string): { repo: string; tag: string } {
  const colon = image.lastIndexOf(':');
  return { repo: image.slice(0, colon), tag: image.slice(colon + 1) };
}

function throwOnError(answer: DockerAnswer, what: string): void {
  const failure = findStreamError(answer.body);
  if (answer.status >= 400 || failure) throw new Error(`${what}: ${failure ?? `status ${answer.status}`}`);
}

/** The first error in the engine's JSON lines. */
export function findStreamError(body: string): string | undefined {
  for (const line of body.split('\n')) {
    if (!line.includes('"error"') && !line.includes('"message"')) continue;
    try {
      const { error, message } = JSON.parse(line) as { error?: string; message?: string };
      if (error ?? message) return error ?? message;
    } catch {
      // Not a JSON line: part of a build's output.
    }
  }
  return undefined;
}
