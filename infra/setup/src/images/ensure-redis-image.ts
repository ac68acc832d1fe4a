import { readFile } from 'node:fs/promises';
import { findRedisServer, publicRedisImage } from '../ensure-redis.ts';
import { runProgramOrThrow } from '../run-program.ts';
import { SetupError } from '../setup-error.ts';
import type { EnsureImageDeps } from './ensure-session-image.ts';
import { hasImage, importImage } from './image-store.ts';
import { packDirectory } from './pack-context.ts';
import { pullReporting } from './pull-image.ts';
import { recipeHash } from './recipe-hash.ts';

/**
 * Returns the name of an image with a Redis for trials: one of this machine's redis-server and the libraries that the
 * loader finds for it, which needs no registry. Without a redis-server for Linux it is the public image.
 */
export async function ensureRedisImage(deps: EnsureImageDeps): Promise<string> {
  const { endpoint, report } = deps;
  const program = process.platform === 'linux' ? await findRedisServer(report) : undefined;
  if (program === undefined) return ensurePublicImage(deps);
  const libraries = (await runProgramOrThrow('ldd', [program])).matchAll(/(\/\S+) \(0x/g);
  const paths = [...new Set([program, ...Array.from(libraries, ([, path = '']) => path)])];
  const image = `shellfleet/redis:${recipeHash(await Promise.all(paths.map((path) => readFile(path))))}`;
  if (await hasImage(endpoint, image)) return image;
  report('Making an image of redis-server');
  const inRoot = paths.map((path) => path.slice(1));
  const files = packDirectory('/', inRoot, [], ['--dereference']);
  await importImage(endpoint, image, files, ['USER 999:999', 'CMD ["redis-server"]']);
  return image;
}

async function ensurePublicImage(deps: EnsureImageDeps): Promise<string> {
  if (await hasImage(deps.endpoint, publicRedisImage)) return publicRedisImage;
  const reason = await pullReporting(deps, publicRedisImage);
  if (reason === undefined) return publicRedisImage;
  throw new SetupError(
    `There is no redis-server to make an image of, and ${publicRedisImage} cannot be pulled: ${reason}.`,
    'sudo apt-get install redis-server',
  );
}
