/** One by one, of one source, in one period. */
const MOST = 16;
const PERIOD_MS = 60_000;

interface CountedEventsDeps<Event> {
  /** Writes an event that happened `count` times since it was last written. */
  write(event: Event, count: number): void;
  /** Further events of the period that were not written one by one. */
  writeOthers(count: number): void;
}

/**
 * Events that whoever causes them can cause without end: of each period the first sixteen different ones are written at
 * once, repetitions and all others are counted and written at its end. So a flood fills no disk, and nothing goes
 * uncounted.
 */
export class CountedEvents<Event> {
  readonly #deps: CountedEventsDeps<Event>;
  readonly #seen = new Map<string, { event: Event; again: number }>();
  #others = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: CountedEventsDeps<Event>) {
    this.#deps = deps;
  }

  /** Adds an event. Events with the same `key` are repetitions of one another. */
  add(key: string, event: Event): void {
    this.#timer ??= setTimeout(() => this.flush(), PERIOD_MS).unref();
    const seen = this.#seen.get(key);
    if (seen !== undefined) seen.again += 1;
    else if (this.#seen.size >= MOST) this.#others += 1;
    else {
      this.#seen.set(key, { event, again: 0 });
      this.#deps.write(event, 1);
    }
  }

  /** Ends the period. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { event, again } of this.#seen.values()) if (again > 0) this.#deps.write(event, again);
    if (this.#others > 0) this.#deps.writeOthers(this.#others);
    this.#seen.clear();
    this.#others = 0;
  }
}
