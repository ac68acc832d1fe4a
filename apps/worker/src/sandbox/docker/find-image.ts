import type { Docker } from '@shellfleet/vendor/dockerode';
import { MissingImage, type SandboxImage } from '../sandbox.ts';
import { isMissingImage, isNotFound, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';

// IMAGE-NAME-1. A name is looked up once for a container. The container, and everything read of its image, use the
//     digest that was found, even if the name means another image by then.

export interface FoundImage extends SandboxImage {
  config: Pick<Docker.ImageInspectInfo['Config'], 'User' | 'WorkingDir' | 'Volumes'>;
}

/**
 * Returns the first image that the engine has: `known`, else one of the names. Throws MissingImage for the last name.
 */
export async function findImage(
  engine: Engine,
  names: readonly [string, ...string[]],
  known?: SandboxImage,
): Promise<FoundImage> {
  if (known !== undefined && names.includes(known.name)) {
    const kept = await inspectImage(engine, known.digest);
    if (kept !== undefined) return { ...kept, name: known.name };
  }
  for (const name of names) {
    const found = await inspectImage(engine, name);
    if (found !== undefined) return { ...found, name };
  }
  throw new MissingImage(names.at(-1) as string);
}

async function inspectImage(engine: Engine, name: string): Promise<Omit<FoundImage, 'name'> | undefined> {
  const found = await engine
    .call((docker) => docker.getImage(name).inspect())
    .catch((error: unknown) => {
      if (!isNotFound(error) && !isMissingImage(error)) throw toShellfleetError(error, 'to look at an image');
      return undefined;
    });
  return found && { digest: found.Id, config: found.Config ?? {} };
}
