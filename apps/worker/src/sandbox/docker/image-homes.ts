import type { Readable } from 'node:stream';
import { type DockerPlan, WORKSPACE_PATH } from '@shellfleet/policy';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { extract, type Header } from 'tar-stream';
import { isNotFound } from './docker-errors.ts';
import type { Engine } from './engine.ts';

// The home directory of a session, at WORKSPACE_PATH. To copy it into a container takes Docker 20.10 half as long as to
// create and start one. An image may have it already.

export const HOME_MODE = 0o755;

const PERMISSIONS = 0o7777;

/** Looks up, once for each image, whether it has a home directory as sessions need it. */
export class ImageHomes {
  readonly #engine: Engine;
  readonly #ofImages = new Map<string, Promise<Header | undefined>>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /**
   * Tells whether the image has a home directory of this owner. `containerId` is a container of the image which has
   * not started. False if that cannot be found out. Never rejects.
   */
  async has(digest: string, owner: DockerPlan['owner'], containerId: string): Promise<boolean> {
    // A home that is root's may come from the engine, which makes the directory in which a container starts.
    if (owner.uid === 0) return false;
    const looking = this.#ofImages.get(digest) ?? this.#look(containerId);
    this.#ofImages.set(digest, looking);
    const home = await looking.catch((): undefined => {
      this.#ofImages.delete(digest);
      return undefined;
    });
    if (home?.type !== 'directory' || home.mode === undefined) return false;
    return home.uid === owner.uid && home.gid === owner.gid && (home.mode & PERMISSIONS) === HOME_MODE;
  }

  /** Returns the first header of the home's archive, which is that of the directory. Undefined if there is none. */
  async #look(containerId: string): Promise<Header | undefined> {
    const read = (docker: Docker, abortSignal: AbortSignal) =>
      docker.getContainer(containerId).getArchive({ path: WORKSPACE_PATH, abortSignal });
    const archive = await this.#engine.call(read).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    if (archive === undefined) return undefined;
    try {
      for await (const { header } of archive.pipe(extract())) return header;
      return undefined;
    } finally {
      // The engine holds the container until the archive is read or destroyed.
      (archive as Readable).destroy();
    }
  }
}
