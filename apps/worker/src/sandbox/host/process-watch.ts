import { isAlive, type LiveProcess } from './live-process.ts';

// Polls for the end of processes that an earlier process of this worker started: the kernel only notifies their parent.
// A session detects its broken connection long before.

const POLL_INTERVAL_MS = 250;

interface Watched {
  process: LiveProcess;
  tell: () => void;
}

export class ProcessWatch {
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  watch(process: LiveProcess): Promise<void> {
    return new Promise((resolve) => {
      this.#watched.add({ process, tell: resolve });
      this.#timer ??= setInterval(() => void this.#poll(), POLL_INTERVAL_MS).unref();
    });
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #poll(): Promise<void> {
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
