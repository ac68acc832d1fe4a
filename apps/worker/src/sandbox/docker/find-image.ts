import { SharedRounds } from '@shellfleet/concurrency';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { MissingImage, type SandboxImage } from '../sandbox.ts';
import { isMissingImage, isNotFound, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';

// IMAGE-NAME-1. A name is looked up once for a container. The container, and everything read of its image, use the
//     digest that was found, even if the name means another image by then.
// IMAGE-NAME-2. A container never gets what a name meant before the container was asked for. Sessions that ask while
//     their image is looked up share the next lookup, as one for each would delay those that come at once.

export interface FoundImage extends SandboxImage {
  config: Pick<Docker.ImageInspectInfo['Config'], 'User' | 'WorkingDir' | 'Volumes'>;
}

/** Looks up images in the engine. */
export class ImageLookup {
  readonly #lookups: SharedRounds<Omit<FoundImage, 'name'> | undefined>;

  constructor(engine: Engine) {
    this.#lookups = new SharedRounds((name) => inspectImage(engine, name));
  }

  /**
   * Returns the first image that the engine has: `known`, else one of the names. Throws MissingImage for the last name.
   */
  async find(names: readonly [string, ...string[]], known?: SandboxImage): Promise<FoundImage> {
    if (known !== undefined && names.includes(known.name)) {
      const kept = await this.#lookups.run(known.digest);
      if (kept !== undefined) return { ...kept, name: known.name };
    }
    for (const name of names) {
      const found = await this.#lookups.run(name);
      if (found !== undefined) return { ...found, name };
    }
    throw new MissingImage(names.at(-1) as string);
  }
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
