import { WORKSPACE_PATH } from '@shellfleet/policy';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { extract } from 'tar-stream';
import { isNotFound } from './docker-errors.ts';
import type { Engine } from './engine.ts';

/** Most bytes of a file that is taken for a list of users. */
const MOST_BYTES = 1_048_576;
const USER_NAME = 'session';

/** Adds a name for the uid of a session to the image's `/etc/passwd`. Programs such as ssh and git require a name. */
export class SessionPasswd {
  readonly #engine: Engine;
  readonly #ofImages = new Map<string, Promise<string>>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Returns the image's users and `uid`. `labels` mark the container that is created to read them, then removed. */
  async write(digest: string, uid: number, labels: Record<string, string>): Promise<string> {
    return withUser(await this.ofImage(digest, labels), uid);
  }

  /** Returns the image's file of users, empty when it has none. Arguments and errors are those of `write`. */
  async ofImage(digest: string, labels: Record<string, string>): Promise<string> {
    const known = this.#ofImages.get(digest) ?? this.#read(digest, labels);
    this.#ofImages.set(digest, known);
    return known.catch((error: unknown) => {
      this.#ofImages.delete(digest);
      throw error;
    });
  }

  async #read(image: string, labels: Record<string, string>): Promise<string> {
    const options = { Image: image, Entrypoint: ['/'], Labels: labels, NetworkDisabled: true };
    const { id } = await this.#engine.call((docker, abortSignal) =>
      docker.createContainer({ ...options, abortSignal }),
    );
    const read = (docker: Docker, abortSignal: AbortSignal) =>
      docker.getContainer(id).getArchive({ path: '/etc/passwd', abortSignal });
    try {
      return await readFirstFile(await this.#engine.call(read));
    } catch (error) {
      if (isNotFound(error)) return '';
      throw error;
    } finally {
      await this.#engine.call((docker, abortSignal) => docker.getContainer(id).remove({ v: true, abortSignal }));
    }
  }
}

export function withUser(passwd: string, uid: number): string {
  const others = passwd.split('\n').filter((line) => {
    const [name, , of] = line.split(':');
    return line !== '' && name !== USER_NAME && of !== String(uid);
  });
  return [...others, `${USER_NAME}:x:${uid}:${uid}::${WORKSPACE_PATH}:/bin/sh`, ''].join('\n');
}

/** Reads the first file of an archive. Returns an empty text for a link or a file that is too large. */
async function readFirstFile(archive: NodeJS.ReadableStream): Promise<string> {
  const entries = archive.pipe(extract());
  for await (const entry of entries) {
    if (entry.header.type !== 'file' || (entry.header.size ?? 0) > MOST_BYTES) return '';
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString('utf8');
  }
  return '';
}
