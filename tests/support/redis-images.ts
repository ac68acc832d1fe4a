import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { inject } from 'vitest';

const run = promisify(execFile);

/**
 * The versions of Redis that tests run in containers. `REDIS_IMAGES` names images, separated by commas; the engine
 * pulls those that it lacks. Default: the machine's own redis-server, which is the one of Debian 12 (Redis 7.0) where
 * the tests install it.
 */
export const redisVersions: readonly string[] = process.env.REDIS_IMAGES?.split(',').filter(Boolean) ?? [
  'the redis-server of this machine',
];

/**
 * Returns the image of one of `redisVersions`. The machine's own redis-server is imported as an image of its own, once
 * for each build of it.
 */
export async function redisImage(version: string): Promise<string> {
  if (process.env.REDIS_IMAGES) return version;
  const docker = new Docker({ socketPath: inject('dockerHost').replace(/^unix:\/\//, '') });
  const program = (await run('which', ['redis-server'])).stdout.trim();
  const digest = createHash('sha256').update(await readFile(program));
  const image = `shellfleet/test-redis:${digest.digest('hex').slice(0, 12)}`;
  const isThere = await docker
    .getImage(image)
    .inspect()
    .then(() => true)
    .catch(() => false);
  if (!isThere) await importProgram(docker, program, image);
  return image;
}

/** Imports a program with the libraries that the loader finds for it, each at its own path. */
async function importProgram(docker: Docker, program: string, image: string): Promise<void> {
  const { stdout } = await run('ldd', [program]);
  const libraries = Array.from(stdout.matchAll(/(\/\S+) \(0x/g), ([, path = '']) => path);
  const paths = [program, ...new Set(libraries)].map((path) => path.slice(1));
  const packing = spawn('tar', ['--dereference', '--create', '--directory', '/', ...paths], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [repo, tag] = image.split(':');
  const progress = await docker.importImage(packing.stdout, { repo, tag });
  await new Promise((resolve) => docker.modem.followProgress(progress, resolve));
  await docker.getImage(image).inspect();
}
