import { ShellfleetError } from '@shellfleet/protocol';
import type Docker from 'dockerode';

const PULL_TIMEOUT_MS = 300_000;

/** Pulls images. Sessions that need the same image share one pull. */
export class Images {
  readonly #docker: Docker;
  readonly #pullTimeoutMs: number;
  readonly #pulls = new Map<string, Promise<void>>();

  constructor(docker: Docker, pullTimeoutMs = PULL_TIMEOUT_MS) {
    this.#docker = docker;
    this.#pullTimeoutMs = pullTimeoutMs;
  }

  pull(image: string): Promise<void> {
    const running = this.#pulls.get(image) ?? this.#pull(image).finally(() => this.#pulls.delete(image));
    this.#pulls.set(image, running);
    return running;
  }

  async #pull(image: string): Promise<void> {
    const signal = AbortSignal.timeout(this.#pullTimeoutMs);
    try {
      const progress = await this.#docker.pull(withTag(image), { abortSignal: signal });
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        this.#docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      const said = signal.aborted ? `it took longer than ${this.#pullTimeoutMs / 1000} s` : messageOf(error);
      throw new ShellfleetError(
        'IMAGE_UNAVAILABLE',
        `The image ${image} is not on this host and could not be pulled: ${said}. Choose an image that the host has, or load it there.`,
        { image },
        { cause: error },
      );
    }
  }
}

/** Without a tag the engine would pull every tag of a repository. */
function withTag(image: string): string {
  return image.includes('@') || image.lastIndexOf(':') > image.lastIndexOf('/') ? image : `${image}:latest`;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim().replace(/\.$/, '');
}
