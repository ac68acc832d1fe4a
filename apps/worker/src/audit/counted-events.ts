/** Most events of one source that are written one by one in one period. */
const MOST_SEPARATE = 16;
const PERIOD_MS = 60_000;

interface CountedEventsDeps<Event> {
  /** Writes an event that happened `count` times since it was last written. */
  write(event: Event, count: number): void;
  /** Writes the number of the period's events that were not written one by one. */
  writeOthers(count: number): void;
}

/**
 * Limits records of events that a source can cause without end. The first sixteen different events of a period are
 * written at once; the others are counted, and the counts written at the period's end.
 */
export class CountedEvents<Event> {
  readonly #deps: CountedEventsDeps<Event>;
  readonly #seen = new Map<string, { event: Event; again: number }>();
  #others = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: CountedEventsDeps<Event>) {
    this.#deps = deps;
  }

  /** Adds an event. Events with the same `key` are repetitions. */
  add(key: string, event: Event): void {
    this.#timer ??= setTimeout(() => this.flush(), PERIOD_MS).unref();
    const seen = this.#seen.get(key);
    if (seen !== undefined) seen.again += 1;
    else if (this.#seen.size >= MOST_SEPARATE) this.#others += 1;
    else {
      this.#seen.set(key, { event, again: 0 });
      this.#deps.write(event, 1);
    }
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { event, again } of this.#seen.values()) if (again > 0) this.#deps.write(event, again);
    if (this.#others > 0) this.#deps.writeOthers(this.#others);
    this.#seen.clear();
    this.#others = 0;
  }
}
