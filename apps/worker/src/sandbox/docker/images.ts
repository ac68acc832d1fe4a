import { isMadeHere } from '@shellfleet/policy';
import { ShellfleetError } from '@shellfleet/protocol';
import type { Docker } from '@shellfleet/vendor/dockerode';
import pLimit from 'p-limit';
import { pullFailed } from './pull-failure.ts';

// PULL-1. Sessions that need the same image share one pull.
// PULL-2. An image that only a host's set-up builds is never pulled, because others could register its name.
// PULL-3. A slow or silent registry delays pulls from other registries only when very many of them run.

const PULLS = 16;
const PULLS_PER_REGISTRY = 3;
const PULL_TIMEOUT_MS = 300_000;
/** Longest silence of a pull. A registry that replies reports progress several times a second. */
const SILENCE_MS = 60_000;

interface PullTimes {
  pullTimeoutMs?: number;
  silenceMs?: number;
}

export class Images {
  readonly #docker: Docker;
  readonly #times: Required<PullTimes>;
  readonly #pulls = new Map<string, Promise<void>>();
  readonly #limit = pLimit(PULLS);
  readonly #registries = new Map<string, ReturnType<typeof pLimit>>();

  constructor(docker: Docker, { pullTimeoutMs = PULL_TIMEOUT_MS, silenceMs = SILENCE_MS }: PullTimes = {}) {
    this.#docker = docker;
    this.#times = { pullTimeoutMs, silenceMs };
  }

  async pull(image: string): Promise<void> {
    if (isMadeHere(image)) throw notMadeYet(image);
    await this.#pullOnce(image);
  }

  #pullOnce(image: string): Promise<void> {
    const running = this.#pulls.get(image) ?? this.#pullInTurn(image).finally(() => this.#pulls.delete(image));
    this.#pulls.set(image, running);
    return running;
  }

  async #pullInTurn(image: string): Promise<void> {
    const registry = registryOf(image);
    const limit = this.#registries.get(registry) ?? pLimit(PULLS_PER_REGISTRY);
    this.#registries.set(registry, limit);
    try {
      await limit(() => this.#limit(() => this.#pull(image)));
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
    try {
      const progress = await this.#docker.pull(withTag(image), { abortSignal: signal });
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        const onEnd = (error: Error | null) => (error ? reject(error) : resolve());
        this.#docker.modem.followProgress(progress, onEnd, () => silent.refresh());
      });
    } catch (error) {
      throw pullFailed(image, registryOf(image), error, signal.aborted ? messageOf(signal.reason) : undefined);
    } finally {
      clearTimeout(late);
      clearTimeout(silent);
    }
  }
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
function withTag(image: string): string {
  return image.includes('@') || image.lastIndexOf(':') > image.lastIndexOf('/') ? image : `${image}:latest`;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim().replace(/\.$/, '');
}
