import { isMadeHere } from '@shellfleet/policy';
import { type RunningPull, ShellfleetError } from '@shellfleet/protocol';
import type { Docker } from '@shellfleet/vendor/dockerode';
import pLimit from 'p-limit';
import { z } from 'zod';
import { pullFailed } from './pull-failure.ts';

// PULL-1. Sessions that need the same image share one pull.
// PULL-2. An image that only a host's set-up builds is never pulled, because others could register its name.
// PULL-3. A slow or silent registry delays pulls from other registries only when very many of them run.
// PULL-4. A place among the pulls is free again only when the new image is recorded and garbage is collected.

const PULLS = 16;
const PULLS_PER_REGISTRY = 4;
const PULL_TIMEOUT_MS = 300_000;
/** Longest silence of a pull. A registry that replies reports progress several times a second. */
const SILENCE_MS = 60_000;

interface PullTimes {
  pullTimeoutMs?: number;
  silenceMs?: number;
}

export interface ImagePullDeps {
  docker: Docker;
  /** Returns the login for a registry, if the host has one. Throws a sentence when it cannot be read. */
  login(registry: string): Promise<Docker.AuthConfig | undefined>;
  /** Is called before a pull. Returns what to do after it. */
  begin(image: string): Promise<() => Promise<void>>;
  times?: PullTimes;
}

export class Images {
  readonly #deps: ImagePullDeps;
  readonly #times: Required<PullTimes>;
  /** Bytes of each layer of the images that are being pulled. */
  readonly #layers = new Map<string, Map<string, { current: number; total: number }>>();
  readonly #pulls = new Map<string, Promise<void>>();
  readonly #limit = pLimit(PULLS);
  readonly #registries = new Map<string, ReturnType<typeof pLimit>>();

  constructor(deps: ImagePullDeps) {
    const { pullTimeoutMs = PULL_TIMEOUT_MS, silenceMs = SILENCE_MS } = deps.times ?? {};
    this.#deps = deps;
    this.#times = { pullTimeoutMs, silenceMs };
  }

  /** Returns the running pulls. Pulls that wait for their turn are left out. */
  running(): RunningPull[] {
    return [...this.#layers].map(([image, layers]) => ({
      image,
      doneBytes: sum([...layers.values()].map(({ current }) => current)),
      totalBytes: sum([...layers.values()].map(({ total }) => total)),
    }));
  }

  async pull(image: string): Promise<void> {
    if (isMadeHere(image)) throw notMadeYet(image);
    await this.#pullOnce(image);
  }

  #pullOnce(image: string): Promise<void> {
    const name = withTag(image);
    const running = this.#pulls.get(name) ?? this.#pullInTurn(image).finally(() => this.#pulls.delete(name));
    this.#pulls.set(name, running);
    return running;
  }

  async #pullInTurn(image: string): Promise<void> {
    const registry = registryOf(image);
    const limit = this.#registries.get(registry) ?? pLimit(PULLS_PER_REGISTRY);
    this.#registries.set(registry, limit);
    try {
      await limit(() =>
        this.#limit(async () => {
          const end = await this.#deps.begin(image);
          await this.#pull(image).finally(() => this.#layers.delete(withTag(image)));
          await end();
        }),
      );
    } finally {
      if (limit.activeCount + limit.pendingCount === 0) this.#registries.delete(registry);
    }
  }

  async #pull(image: string): Promise<void> {
    const { pullTimeoutMs, silenceMs } = this.#times;
    const giveUp = new AbortController();
    const stop = (why: string) => () => giveUp.abort(new Error(why));
    const late = setTimeout(stop(`it took longer than ${pullTimeoutMs / 1_000} s`), pullTimeoutMs);
    const silent = setTimeout(stop(`the registry was silent for ${silenceMs / 1_000} s`), silenceMs);
    const { signal } = giveUp;
    const layers = new Map<string, { current: number; total: number }>();
    this.#layers.set(withTag(image), layers);
    const onProgress = (event: unknown) => {
      silent.refresh();
      noteProgress(layers, event);
    };
    const authconfig = await this.#login(image).catch((error: unknown) => {
      clearTimeout(late);
      clearTimeout(silent);
      throw error;
    });
    try {
      const login = authconfig === undefined ? {} : { authconfig };
      const progress = await this.#deps.docker.pull(withTag(image), { abortSignal: signal, ...login });
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        const onEnd = (error: Error | null) => (error ? reject(error) : resolve());
        this.#deps.docker.modem.followProgress(progress, onEnd, onProgress);
      });
    } catch (error) {
      throw pullFailed(image, registryOf(image), error, signal.aborted ? messageOf(signal.reason) : undefined);
    } finally {
      clearTimeout(late);
      clearTimeout(silent);
    }
  }

  #login(image: string): Promise<Docker.AuthConfig | undefined> {
    const registry = registryOf(image);
    return this.#deps.login(registry).catch((error: unknown) => {
      throw pullFailed(image, registry, error, messageOf(error));
    });
  }
}

const progressSchema = z.object({
  status: z.string(),
  id: z.string(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
});

/** Adds an event of the engine to the bytes of the layers. Events of other kinds are ignored. */
function noteProgress(layers: Map<string, { current: number; total: number }>, event: unknown): void {
  const { success, data } = progressSchema.safeParse(event);
  if (!success) return;
  const { status, id, progressDetail: { current = 0, total = 0 } = {} } = data;
  if (status === 'Downloading') layers.set(id, { current, total: Math.max(current, total) });
  const known = layers.get(id);
  if (known !== undefined && /^(Download complete|Pull complete)$/.test(status)) known.current = known.total;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function notMadeYet(image: string): ShellfleetError {
  return new ShellfleetError(
    'IMAGE_UNAVAILABLE',
    `The image ${image} is not on this host, and is in no registry. \`shellfleet up\` makes \`slim\` at its start and \`full\` in the minutes after it; elsewhere load it with docker load. Or name another image.`,
    { image },
  );
}

/** Returns the registry in an image's name: the first part, if that has a dot or a colon or is `localhost`. */
function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  return rest.length > 0 && (/[.:]/.test(first) || first === 'localhost') ? first : 'docker.io';
}

/** Adds a missing tag. Without a tag the engine would pull every tag of a repository. */
export function withTag(image: string): string {
  return image.includes('@') || image.lastIndexOf(':') > image.lastIndexOf('/') ? image : `${image}:latest`;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim().replace(/\.$/, '');
}
