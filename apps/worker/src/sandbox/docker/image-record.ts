import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { tryJson } from '@shellfleet/protocol';
import { z } from 'zod';

const recordSchema = z.array(z.object({ digest: z.string(), name: z.string(), bytes: z.number(), usedAt: z.number() }));
/** Image that this host pulled. `name` has a tag or a digest; `usedAt` is in ms, by the clock of this host. */
export type RecordedImage = z.infer<typeof recordSchema>[number];

/** The images that this host pulled, with their last use, in a file that outlives the worker. */
export class ImageRecord {
  readonly #path: string;
  readonly #images: Map<string, RecordedImage>;
  #isChanged = false;
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, images: readonly RecordedImage[]) {
    this.#path = path;
    this.#images = new Map(images.map((image) => [image.digest, image]));
  }

  /** Opens the record. A file that cannot be understood counts as empty, so its images are never removed. */
  static async open(path: string): Promise<ImageRecord> {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return null;
    });
    return new ImageRecord(path, recordSchema.safeParse(tryJson(text)).data ?? []);
  }

  /** Returns the images, the least recently used first. */
  oldestFirst(): RecordedImage[] {
    return [...this.#images.values()].sort((a, b) => a.usedAt - b.usedAt);
  }

  get(digest: string): RecordedImage | undefined {
    return this.#images.get(digest);
  }

  async add(image: RecordedImage): Promise<void> {
    this.#images.set(image.digest, image);
    this.#isChanged = true;
    await this.save();
  }

  async remove(digest: string): Promise<void> {
    if (this.#images.delete(digest)) this.#isChanged = true;
    await this.save();
  }

  /** Notes a use, which `save` writes. The loss of a few notes is harmless. */
  use(digest: string): void {
    const image = this.#images.get(digest);
    if (image === undefined) return;
    image.usedAt = Date.now();
    this.#isChanged = true;
  }

  /** Writes the record, if it has changed. */
  save(): Promise<void> {
    const write = async () => {
      if (!this.#isChanged) return;
      this.#isChanged = false;
      const draft = `${this.#path}.${randomBytes(4).toString('hex')}`;
      await writeFile(draft, JSON.stringify([...this.#images.values()]), { mode: 0o600 });
      await rename(draft, this.#path);
    };
    this.#writing = this.#writing.catch(() => {}).then(write);
    return this.#writing;
  }
}
