import { posix } from 'node:path';
import { ShellfleetError } from '@shellfleet/protocol';
import pLimit from 'p-limit';
import type { Header, Pack } from 'tar-stream';
import { checkCopiedName } from './copied-name.ts';
import { type CopiedFile, type CopyTarget, copyDirectory } from './download-directory.ts';
import type { FileSteps } from './file-steps.ts';
import { type LocalFile, PERMISSIONS } from './local-file.ts';
import { Progress } from './progress.ts';

/** Yields a directory of the sandbox as a tar. Nothing is read ahead of a slow reader but a few files. */
export async function* readTar(
  steps: FileSteps,
  path: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const { pack } = await import('tar-stream');
  const archive = pack();
  const stop = new AbortController();
  const both = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  const copying = copyDirectory(steps, path, new TarTarget(archive, path), new Progress(undefined), both);
  copying.catch((error: Error) => archive.destroy(error));
  try {
    for await (const piece of archive) yield piece as Buffer;
    await copying;
  } finally {
    stop.abort();
    archive.destroy();
  }
}

type EntryHeader = Partial<Header> & Pick<Header, 'name'>;

/** A tar that becomes a copy of a directory. Its entries are written one after the other. */
class TarTarget implements CopyTarget {
  readonly #archive: Pack;
  readonly #source: string;
  readonly #oneAtATime = pLimit(1);
  readonly #links: { name: string; linkname: string }[] = [];

  constructor(archive: Pack, source: string) {
    this.#archive = archive;
    this.#source = source;
  }

  begin(mode: number): Promise<void> {
    return this.makeDirectory('.', mode);
  }

  async check(name: string): Promise<void> {
    checkCopiedName(name, this.#source);
  }

  async makeDirectory(name: string, mode: number, modifiedAt = new Date(0)): Promise<void> {
    await this.#add({ name: `${name}/`, type: 'directory', mode: mode & PERMISSIONS, mtime: modifiedAt });
  }

  /** Begins the entry of a file. Other entries wait until it is finished. */
  async openFile(name: string, { size, mode, modifiedAt }: CopiedFile): Promise<LocalFile> {
    const ended = Promise.withResolvers<void>();
    ended.promise.catch(() => {});
    const entry = await this.#begin({ name, type: 'file', size, mode: mode & PERMISSIONS, mtime: modifiedAt }, ended);
    let written = 0;
    return {
      write: async (data) => {
        written += data.byteLength;
        if (written > size) throw changed(this.#source, name);
        if (!entry.write(data))
          await Promise.race([new Promise((resolve) => entry.once('drain', () => resolve(undefined))), ended.promise]);
      },
      finish: async () => {
        if (written < size) throw changed(this.#source, name);
        entry.end(undefined);
        await ended.promise;
      },
      // What fails here ends the whole tar, with its error.
      discard: async () => {},
    };
  }

  async addLink(name: string, linkname: string): Promise<void> {
    this.#links.push({ name, linkname });
  }

  /** Writes the links. They come last, so that whoever unpacks the tar writes nothing through them. */
  async finish(): Promise<void> {
    for (const link of this.#links) await this.#add({ ...link, type: 'symlink', mode: 0o777, mtime: new Date(0) });
    this.#archive.finalize();
  }

  async #add(header: EntryHeader): Promise<void> {
    const ended = Promise.withResolvers<void>();
    await this.#begin(header, ended);
    return ended.promise;
  }

  /** Begins an entry when the one before it has ended. */
  #begin(
    header: EntryHeader,
    { promise, resolve, reject }: PromiseWithResolvers<void>,
  ): Promise<ReturnType<Pack['entry']>> {
    return new Promise((begun, failed) => {
      const begin = () => {
        const entry = this.#archive.entry(header, (error) => (error ? reject(error) : resolve()));
        // The callback gets the error, too.
        entry.on('error', () => {});
        begun(entry);
        return promise.catch(() => {});
      };
      this.#oneAtATime(begin).catch(failed);
    });
  }
}

function changed(source: string, name: string): ShellfleetError {
  const path = posix.join(source, name);
  return new ShellfleetError('FILE_DENIED', `${path} changed while it was read, so the tar is not complete.`, { path });
}
