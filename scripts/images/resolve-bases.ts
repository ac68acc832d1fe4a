import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../steps.ts';
import { docker } from './docker-program.ts';

/** The base images of the published images, each as `repository@sha256:…`. */
export type ResolvedBases = Record<'worker' | 'api' | 'session', string>;

/**
 * Pulls the base images that infra/images/bases.json names, and returns them by their digests. Throws with all images
 * that have none, because a release must name what it is made of.
 */
export async function resolveBases(bases?: Record<string, string>): Promise<ResolvedBases> {
  const named = bases ?? (JSON.parse(await readFile(join(root, 'infra/images/bases.json'), 'utf8')) as ResolvedBases);
  const resolved: Record<string, string> = {};
  const refused: string[] = [];
  for (const [name, image] of Object.entries(named)) {
    try {
      resolved[name] = await resolveBase(image);
    } catch (error) {
      refused.push(
        `The base image ${image} has no digest here, so nobody could make the same ${name} image: ${(error as Error).message}`,
      );
    }
  }
  if (refused.length > 0) throw new Error(refused.join('\n'));
  return resolved as ResolvedBases;
}

async function resolveBase(image: string): Promise<string> {
  await docker(['pull', '--quiet', image]);
  const repository = image.replace(/:[^:/]+$/, '');
  const digests = (await docker(['image', 'inspect', '--format', '{{join .RepoDigests " "}}', image])).split(' ');
  // Docker writes the short name of its own registry's images without the registry.
  const found = digests.find((digest) => digest.startsWith(`${repository}@sha256:`));
  if (found === undefined) throw new Error('the engine knows no digest of it in its registry');
  return found;
}
