import type { TransferProgress } from './files.ts';

export class Progress {
  readonly #onProgress: ((progress: TransferProgress) => void) | undefined;
  readonly #sofar: TransferProgress = { bytes: 0, files: 0 };

  constructor(onProgress: ((progress: TransferProgress) => void) | undefined) {
    this.#onProgress = onProgress;
  }

  add(bytes: number, files: number): void {
    this.#sofar.bytes += bytes;
    this.#sofar.files += files;
    this.#onProgress?.({ ...this.#sofar });
  }
}
