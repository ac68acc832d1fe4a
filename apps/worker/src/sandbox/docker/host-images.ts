import { createHash } from 'node:crypto';
import { isListedImage, isMadeHere, type SessionImages, toDefaultImage, toWholeName } from '@shellfleet/policy';
import {
  ATTRIBUTES,
  ensureShellfleetError,
  type HostImage,
  type RunningPull,
  ShellfleetError,
} from '@shellfleet/protocol';
import type { Docker } from '@shellfleet/vendor/dockerode';
import type { Space } from '../../host/free-space.ts';
import type { Logger } from '../../log/logger.ts';
import { isConflict, isNotFound, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';
import { ImageRecord, type RecordedImage } from './image-record.ts';
import { type ImagePullDeps, Images, withTag } from './images.ts';

// The images of this host: what it pulls, and what it removes again.
//
// IMAGES-1. An image that this host did not pull is never removed.
// IMAGES-2. An image is never removed while a container has it, while a sandbox is being made of it, while it was just
//     pulled for a session that has not used it yet, or while it is pinned.
// IMAGES-3. Over its budget, the host removes the least recently used images first, and no more than necessary.

/** How long a new image stays if nobody uses it. Then the session that wanted it has ended. */
const WANTED_MS = 60_000;
/** Most images that a host tells other hosts of, in each heartbeat. */
const MOST_MARKS = 500;

/** How many bytes the pulled images may take, and how many stay free on the engine's disk. */
interface ImageBudget {
  maxBytes?: number | undefined;
  keepFreeBytes?: number | undefined;
}

export interface HostImagesOptions {
  /** Path of the file that records what this host pulled. */
  recordPath: string;
  budget: ImageBudget;
  /** Names of images to pull in advance and to keep. */
  prepull: readonly string[];
  login: ImagePullDeps['login'];
}

/** Which images sessions may name, and what they are called. */
interface ImageNames {
  images: readonly string[] | 'any';
  defaultImage: string;
  sessionImages?: SessionImages | undefined;
}

interface HostImagesDeps extends HostImagesOptions {
  engine: Engine;
  names: ImageNames;
  /** Returns the space on the engine's disk, if it can be seen. */
  readSpace(): Promise<Space | undefined>;
  logger: Logger | undefined;
}

export class HostImages {
  readonly #deps: HostImagesDeps;
  readonly #record: ImageRecord;
  readonly #pulls: Images;
  readonly #pinned: ReadonlySet<string>;
  /** Digests from which sandboxes are being made, with their number. */
  readonly #held = new Map<string, number>();
  /** Digests of new images that no session has used, with the time of their pull (ms, `performance.now()`). */
  readonly #wanted = new Map<string, number>();
  /** Why images to pull in advance are missing, in a sentence each, by the name of the image. */
  readonly #missing = new Map<string, string>();
  #collecting: Promise<unknown> = Promise.resolve();
  #marks: readonly string[] = [];

  private constructor(deps: HostImagesDeps, record: ImageRecord) {
    this.#deps = deps;
    this.#record = record;
    const { docker } = deps.engine;
    this.#pulls = new Images({ docker, login: deps.login, begin: (image) => this.#begin(image) });
    const usual = toDefaultImage(deps.names.defaultImage, deps.names.sessionImages);
    this.#pinned = new Set([...deps.prepull.map((name) => this.#toWholeName(name)), withTag(usual.image)]);
  }

  static async open(deps: HostImagesDeps): Promise<HostImages> {
    return new HostImages(deps, await ImageRecord.open(deps.recordPath));
  }

  /** Pulls an image. Calls for the same image share one pull. Throws IMAGE_UNAVAILABLE. */
  pull(image: string): Promise<void> {
    return this.#pulls.pull(image);
  }

  get marks(): readonly string[] {
    return this.#marks;
  }

  markOf(image: string): string {
    return toMark(this.#toWholeName(image));
  }

  warnings(): string[] {
    return [...this.#missing.values()];
  }

  running(): RunningPull[] {
    return this.#pulls.running();
  }

  progressOf(name: string): RunningPull | undefined {
    const image = this.#toWholeName(name);
    return this.running().find((pull) => pull.image === image);
  }

  /** Pulls an image that sessions may name, as an operator asks. Returns its digest. Throws IMAGE_UNAVAILABLE. */
  async fetch(name: string): Promise<string> {
    const image = this.#toWholeName(name);
    if (!this.#isListed(image)) throw notListed(name);
    const made = isMadeHere(image) ? await this.#inspect(image) : undefined;
    if (made !== undefined) return made.digest;
    await this.pull(image);
    const found = await this.#inspect(image);
    if (found === undefined) throw goneAgain(image);
    // No session waits for it.
    this.#wanted.delete(found.digest);
    return found.digest;
  }

  /** Keeps an image while a sandbox is made of it, and notes that it was used. */
  async using<T>(digest: string, make: () => Promise<T>): Promise<T> {
    this.#wanted.delete(digest);
    this.#record.use(digest);
    this.#held.set(digest, (this.#held.get(digest) ?? 0) + 1);
    try {
      return await make();
    } finally {
      const left = (this.#held.get(digest) ?? 1) - 1;
      if (left === 0) this.#held.delete(digest);
      else this.#held.set(digest, left);
    }
  }

  /** Lists the images on this host that sessions may name. */
  async list(): Promise<HostImage[]> {
    const found = await this.#ask('listing images', (docker) => docker.listImages());
    const inUse = await this.#listUsed();
    return found.flatMap((image) => {
      const { tags, digests } = namesOf(image);
      // An image that was pulled by its digest has no tag.
      return (tags.length > 0 ? tags : digests)
        .filter((name) => this.#isListed(name))
        .map((name) => this.#describe({ digest: image.Id, name, bytes: image.Size }, inUse));
    });
  }

  /** Removes every image that this host pulled, and that is neither in use nor pinned. Returns those images. */
  prune({ dryRun }: { dryRun: boolean }): Promise<HostImage[]> {
    return this.#inTurn(() => this.#collect(async () => true, dryRun));
  }

  /** Begins to pull what is to be there and is missing, and collects garbage. Never rejects. */
  async tend(): Promise<void> {
    for (const name of this.#deps.prepull) void this.#prepull(this.#toWholeName(name)).catch(this.#warn);
    await this.#keepBudget().catch(this.#warn);
    await this.#mark().catch(this.#warn);
    await this.#record.save().catch(this.#warn);
  }

  async close(): Promise<void> {
    await this.#record.save();
  }

  readonly #warn = (err: unknown): void => this.#deps.logger?.warn({ err }, 'images.upkeep-failed');

  async #prepull(image: string): Promise<void> {
    try {
      if ((await this.#inspect(image)) === undefined) {
        await this.pull(image);
        this.#deps.logger?.info({ [ATTRIBUTES.imageName]: image }, 'image.prepulled');
      }
      this.#missing.delete(image);
    } catch (error) {
      this.#missing.set(image, ensureShellfleetError(error).message);
      throw error;
    }
  }

  /** Returns the recording of a new image. An image that was there before the pull is not this host's to remove. */
  async #begin(image: string): Promise<() => Promise<void>> {
    const before = await this.#inspect(image);
    return async () => {
      const found = await this.#inspect(image);
      if (found === undefined) return;
      const { digest, bytes } = found;
      if (digest !== before?.digest) {
        this.#wanted.set(digest, performance.now());
        await this.#record.add({ digest, name: withTag(image), bytes, usedAt: Date.now() });
      }
      await this.#keepBudget().catch(this.#warn);
      await this.#mark().catch(this.#warn);
    };
  }

  /** Notes the images that this host has. */
  async #mark(): Promise<void> {
    const found = await this.#ask('listing images', (docker) => docker.listImages());
    const names = found.map(namesOf).flatMap(({ tags, digests }) => [...tags, ...digests]);
    this.#marks = names.slice(0, MOST_MARKS).map(toMark);
  }

  #keepBudget(): Promise<HostImage[]> {
    const { maxBytes = Number.POSITIVE_INFINITY, keepFreeBytes = 0 } = this.#deps.budget;
    if (maxBytes === Number.POSITIVE_INFINITY && keepFreeBytes === 0) return Promise.resolve([]);
    const isOver = async () => {
      const bytes = this.#record.oldestFirst().reduce((sum, image) => sum + image.bytes, 0);
      const space = keepFreeBytes === 0 ? undefined : await this.#deps.readSpace();
      return bytes > maxBytes || (space !== undefined && space.freeBytes < keepFreeBytes);
    };
    return this.#inTurn(() => this.#collect(isOver, false));
  }

  #inTurn<T>(collect: () => Promise<T>): Promise<T> {
    const turn = this.#collecting.catch(() => {}).then(collect);
    this.#collecting = turn;
    return turn;
  }

  /** Removes images, the least recently used first, while `isOver`. Returns what it removed, or would remove. */
  async #collect(isOver: () => Promise<boolean>, dryRun: boolean): Promise<HostImage[]> {
    if (!(await isOver())) return [];
    const inUse = await this.#listUsed();
    const removed: HostImage[] = [];
    for (const image of this.#record.oldestFirst()) {
      if (!(await isOver())) break;
      const described = this.#describe(image, inUse);
      if (described.inUse || described.pinned || this.#isWanted(image.digest)) continue;
      if (!dryRun && !(await this.#remove(image))) continue;
      removed.push(described);
    }
    if (!dryRun && removed.length > 0) {
      await this.#mark().catch(this.#warn);
      this.#deps.logger?.info({ images: removed.map(({ image }) => image) }, 'images.removed');
    }
    return removed;
  }

  /** Removes an image. Returns whether it is gone: the engine keeps an image that a container has. */
  async #remove({ digest, name }: RecordedImage): Promise<boolean> {
    const named = await this.#inspect(name);
    const target = named?.digest === digest ? name : digest;
    try {
      await this.#deps.engine.call((docker, abortSignal) => docker.getImage(target).remove({ abortSignal }));
    } catch (error) {
      if (isConflict(error)) return false;
      if (!isNotFound(error)) throw toShellfleetError(error, 'removing an image');
    }
    await this.#record.remove(digest);
    return true;
  }

  #isWanted(digest: string): boolean {
    const since = this.#wanted.get(digest);
    if (since === undefined) return false;
    if (performance.now() - since < WANTED_MS) return true;
    this.#wanted.delete(digest);
    return false;
  }

  #describe({ digest, name, bytes }: Omit<RecordedImage, 'usedAt'>, inUse: ReadonlySet<string>): HostImage {
    const recorded = this.#record.get(digest);
    return {
      ...{ image: name, digest, bytes, isPulled: recorded !== undefined },
      ...{ inUse: inUse.has(digest) || this.#held.has(digest), pinned: this.#pinned.has(name) },
      ...(recorded === undefined ? {} : { usedAt: new Date(recorded.usedAt).toISOString() }),
    };
  }

  /** Returns the digests of the images that any container of the engine has. */
  async #listUsed(): Promise<Set<string>> {
    const containers = await this.#ask('listing containers', (docker) => docker.listContainers({ all: true }));
    return new Set(containers.map(({ ImageID }) => ImageID));
  }

  async #inspect(image: string): Promise<{ digest: string; bytes: number } | undefined> {
    const found = await this.#ask('looking at an image', (docker) =>
      docker
        .getImage(image)
        .inspect()
        .catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
          return undefined;
        }),
    );
    return found && { digest: found.Id, bytes: found.Size };
  }

  #ask<T>(doing: string, call: (docker: Docker, abortSignal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#deps.engine.call(call).catch((error: unknown) => {
      throw toShellfleetError(error, doing);
    });
  }

  #isListed(image: string): boolean {
    const { images } = this.#deps.names;
    return images === 'any' || isListedImage(image, images);
  }

  #toWholeName(name: string): string {
    return withTag(toWholeName(name, this.#deps.names.sessionImages));
  }
}

/** Returns the names of an image. Older engines write `<none>` where it has none. */
function namesOf({ RepoTags, RepoDigests }: Docker.ImageInfo): { tags: string[]; digests: string[] } {
  const isName = (name: string) => !name.startsWith('<none>');
  return { tags: (RepoTags ?? []).filter(isName), digests: (RepoDigests ?? []).filter(isName) };
}

const toMark = (wholeName: string) => createHash('sha256').update(wholeName).digest('hex').slice(0, 12);

function goneAgain(image: string): ShellfleetError {
  return new ShellfleetError(
    'IMAGE_UNAVAILABLE',
    `The image ${image} was pulled, and removed again by somebody else. Pull it again.`,
    { image },
  );
}

function notListed(image: string): ShellfleetError {
  return new ShellfleetError(
    'IMAGE_UNAVAILABLE',
    `This host does not let sessions name the image ${image}, so it does not pull it. Its operator lists images in SHELLFLEET_IMAGES.`,
    { image },
  );
}
