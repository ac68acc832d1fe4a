import { TooSlow } from '../redactor.ts';

const MS_PER_64_KIB = 50;
/** What a pause of the whole process, or the first use of a pattern, may cost beside the work. */
const GRACE_MS = 200;

/** The time that the custom patterns of one stream may take: so much for every byte that came. */
export class TimeBudget {
  readonly #now: (() => number) | undefined;
  readonly #spentMs = new Map<object, number>();
  #receivedBytes = 0;

  constructor(now: (() => number) | undefined) {
    this.#now = now;
  }

  receive(bytes: number): void {
    this.#receivedBytes += bytes;
  }

  /** Throws when `work` of `owner`, all in all, took longer than what came allows. */
  measure(owner: { type: string }, work: () => void): void {
    if (this.#now === undefined) {
      work();
      return;
    }
    const startedAt = this.#now();
    work();
    const spentMs = (this.#spentMs.get(owner) ?? 0) + this.#now() - startedAt;
    this.#spentMs.set(owner, spentMs);
    if (spentMs > GRACE_MS + (this.#receivedBytes / 65_536) * MS_PER_64_KIB) throw new TooSlow(owner.type);
  }
}
