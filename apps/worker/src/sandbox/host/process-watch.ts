import { isAlive, type LiveProcess } from './live-process.ts';

// How processes that are not our children end: those that an earlier life of this worker started. The kernel tells nobody, so they
// are looked at; a session notices its broken connection long before, and only then waits for the word from here.

const LOOK_INTERVAL_MS = 250;

interface Watched {
  process: LiveProcess;
  tell: () => void;
}

export class ProcessWatch {
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  /** Resolves once it is gone. */
  watch(process: LiveProcess): Promise<void> {
    return new Promise((resolve) => {
      this.#watched.add({ process, tell: resolve });
      this.#timer ??= setInterval(() => void this.#look(), LOOK_INTERVAL_MS).unref();
    });
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    for (const watched of this.#watched) {
      if (await isAlive(watched.process)) continue;
      this.#watched.delete(watched);
      watched.tell();
    }
    this.#looking = false;
    if (this.#watched.size === 0) this.close();
  }
}
