import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../../log/logger.ts';
import type { ApiList } from './api-client.ts';
import { isExpired } from './api-errors.ts';
import type { WatchEvent } from './watch-events.ts';

// A copy of all objects of one kind that have some labels, kept up to date by one watch.
//
// INFORMER-1. After a list the copy holds exactly what the list holds. What is missing in it is reported as gone.
// INFORMER-2. A broken watch is resumed after the last event or bookmark. Where the server cannot resume, a list
//             replaces the copy. So no change is missed, though changes of one object may be reported as one.
// INFORMER-3. An object with the name of another one is reported after that one is reported as gone.
// INFORMER-4. Every failure is followed by another attempt, until the informer is closed.
// INFORMER-5. Who has read an object that the copy does not hold asks for a list. An open watch may be silent.

/** Life of a watch from which its end is no failure. */
const LEAST_LIFE_MS = 500;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 10_000;
/** Failures in a row after which a list replaces the copy: the server may have lost the version, and not say so. */
const FAILURES_TO_LIST = 2;
const FAILURES_TO_REPORT = 3;

export interface ApiObject {
  metadata: { name: string; uid: string; resourceVersion: string };
}

export interface InformerOptions<T extends ApiObject> {
  list(signal: AbortSignal): Promise<ApiList<T>>;
  watch(resourceVersion: string, signal: AbortSignal): Promise<AsyncIterable<WatchEvent<T>>>;
  /** Receives each new state of an object. */
  onPresent(object: T): void;
  /** Receives the last known state of an object that is gone. */
  onGone(object: T): void;
  logger?: Logger | undefined;
}

export class Informer<T extends ApiObject> {
  readonly #options: InformerOptions<T>;
  readonly #closing = new AbortController();
  readonly #objects = new Map<string, T>();
  #following: Promise<void> | undefined;
  #watching: AbortController | undefined;
  #problem: string | undefined;

  private constructor(options: InformerOptions<T>) {
    this.#options = options;
  }

  /** Lists the objects, and then follows their changes. Throws when the first list fails. */
  static async open<T extends ApiObject>(options: InformerOptions<T>): Promise<Informer<T>> {
    const informer = new Informer(options);
    const version = await informer.#list();
    informer.#following = informer.#follow(version);
    return informer;
  }

  /** Why changes are not seen at present, as an error's message; undefined while they are. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get(name: string): T | undefined {
    return this.#objects.get(name);
  }

  values(): T[] {
    return [...this.#objects.values()];
  }

  /** Ends the watch, and replaces the copy by a list (INFORMER-5). */
  refresh(): void {
    this.#watching?.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#following;
  }

  async #follow(first: string): Promise<void> {
    const { signal } = this.#closing;
    let version: string | undefined = first;
    for (let failures = 0; !signal.aborted; ) {
      let since = performance.now();
      let isOpen = false;
      try {
        version ??= await this.#list();
        this.#watching = new AbortController();
        const events = await this.#options.watch(version, AbortSignal.any([signal, this.#watching.signal]));
        this.#recover();
        since = performance.now();
        isOpen = true;
        for await (const event of events) {
          version = this.#apply(event);
          failures = 0;
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#options.logger?.debug({ err: error }, 'kubernetes.watch-broke');
        if (isExpired(error)) version = undefined;
        else if (this.#watching?.signal.aborted) version = undefined;
        else if (!isOpen && failures + 1 >= FAILURES_TO_REPORT) this.#report(error);
      }
      failures = isOpen && performance.now() - since >= LEAST_LIFE_MS ? 0 : failures + 1;
      if (failures >= FAILURES_TO_LIST) version = undefined;
      await delay(waitMs(failures), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Replaces the copy by a list (INFORMER-1), and returns the version of the list. */
  async #list(): Promise<string> {
    const { items, resourceVersion } = await this.#options.list(this.#closing.signal);
    const listed = new Set(items.map(({ metadata }) => metadata.name));
    for (const [name, object] of this.#objects) if (!listed.has(name)) this.#remove(object);
    for (const object of items) this.#put(object);
    return resourceVersion;
  }

  /** Applies an event, and returns the version after it. */
  #apply(event: WatchEvent<T>): string {
    if (event.type === 'bookmark') return event.resourceVersion;
    if (event.type === 'present') this.#put(event.object);
    else this.#remove(event.object);
    return event.object.metadata.resourceVersion;
  }

  #put(object: T): void {
    const { name, uid, resourceVersion } = object.metadata;
    const earlier = this.#objects.get(name);
    if (earlier?.metadata.resourceVersion === resourceVersion) return;
    if (earlier !== undefined && earlier.metadata.uid !== uid) this.#remove(earlier);
    this.#objects.set(name, object);
    this.#options.onPresent(object);
  }

  #remove(object: T): void {
    if (this.#objects.delete(object.metadata.name)) this.#options.onGone(object);
  }

  #report(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (this.#problem === undefined) this.#options.logger?.error({ problem: message }, 'kubernetes.unavailable');
    this.#problem = message;
  }

  #recover(): void {
    if (this.#problem !== undefined) this.#options.logger?.info('kubernetes.recovered');
    this.#problem = undefined;
  }
}

/** Returns a random time within a bound that doubles with each failure, so that workers do not come back together. */
function waitMs(failures: number): number {
  const most = Math.min(FIRST_WAIT_MS * 2 ** failures, LONGEST_WAIT_MS);
  return most * (0.5 + Math.random() / 2);
}
