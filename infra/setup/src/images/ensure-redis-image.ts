import { readFile } from 'node:fs/promises';
import { findRedisServer } from '../ensure-redis.ts';
import { runProgramOrThrow } from '../run-program.ts';
import { SetupError } from '../setup-error.ts';
import type { EnsureImageDeps } from './ensure-session-image.ts';
import { hasImage, importImage } from './image-store.ts';
import { packDirectory } from './pack-context.ts';
import { recipeHash } from './recipe-hash.ts';

/**
 * Returns the name of an image with this machine's redis-server and the libraries that the loader finds for it. The
 * image is for trials, and needs no registry.
 */
export async function ensureRedisImage({ endpoint, report }: EnsureImageDeps): Promise<string> {
  const program = await findRedisServer(report);
  if (program === undefined)
    throw new SetupError('No redis-server is installed to make an image of.', 'sudo apt-get install redis-server');
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
