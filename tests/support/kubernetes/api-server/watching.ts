import type { ServerResponse } from 'node:http';
import { matcherOf, type Selection } from './listing.ts';
import { apiVersionOf } from './resources.ts';
import type { Matcher } from './selectors.ts';
import { type ApiFailure, badRequest, expired } from './status.ts';
import type { KubeObject, Store, StoreEvent } from './store.ts';

/** Shortest and longest time until the server ends a watch that asked for no time. */
const DEFAULT_TIMEOUT_MS = 30 * 60_000;
/** Time before its end at which a watch gets a last bookmark. */
const LAST_BOOKMARK_MS = 2_000;

export interface WatchOptions {
  bookmarkEveryMs: number;
  /** Place of the failure 410: an event of the stream, as the watch cache gives it, or the response, as etcd does. */
  expiredAs: 'event' | 'response';
}

/** Streams of events that are open. */
export class Watches {
  readonly #open = new Set<Watch>();
  readonly #store: Store;
  readonly #options: WatchOptions;

  constructor(store: Store, options: WatchOptions) {
    this.#store = store;
    this.#options = options;
    store.subscribe((event) => {
      for (const watch of this.#open) watch.push(event);
    });
  }

  get count(): number {
    return this.#open.size;
  }

  /** Answers a request to watch. Throws the refusal of one. */
  open(selection: Selection, response: ServerResponse): void {
    const { type, namespace, query } = selection;
    const matches = matcherOf(selection);
    const inNamespace: Matcher = ({ metadata }) => namespace === undefined || metadata.namespace === namespace;
    const watch = new Watch(selection, (object) => inNamespace(object) && matches(object), response);
    const from = query.get('resourceVersion') ?? '';
    if (!/^\d*$/.test(from)) throw badRequest(`Invalid value: "${from}": invalid resource version`);
    const missed = ['', '0'].includes(from) ? undefined : this.#store.since(type.resource, Number(from));
    const isExpired = missed === undefined && !['', '0'].includes(from);
    const failure = expired(`too old resource version: ${from} (${this.#store.compactedAt})`);
    if (isExpired && this.#options.expiredAs === 'response') throw failure;
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' });
    response.flushHeaders();
    if (isExpired) {
      watch.fail(failure);
      return;
    }
    // Without a revision a watch begins with the present objects.
    if (!missed) for (const object of this.#store.list(type.resource, namespace)) watch.add(object);
    for (const event of missed ?? []) watch.push(event);
    this.#keep(watch, query);
  }

  /** Sends every watch that allows it a bookmark now. */
  bookmark(): void {
    for (const watch of this.#open) watch.bookmark(this.#store.revision);
  }

  /** Ends every watch as the server does after its time-out. */
  end(): void {
    for (const watch of this.#open) watch.response.end();
  }

  /** Breaks the connection of every watch. */
  cut(): void {
    for (const watch of this.#open) watch.response.destroy();
  }

  #keep(watch: Watch, query: URLSearchParams): void {
    this.#open.add(watch);
    const timeoutMs = Number(query.get('timeoutSeconds') ?? 0) * 1_000 || DEFAULT_TIMEOUT_MS;
    const timers = [
      setInterval(() => watch.bookmark(this.#store.revision), this.#options.bookmarkEveryMs),
      setTimeout(() => watch.response.end(), timeoutMs),
      setTimeout(() => watch.bookmark(this.#store.revision), Math.max(0, timeoutMs - LAST_BOOKMARK_MS)),
    ];
    watch.response.once('close', () => {
      this.#open.delete(watch);
      for (const timer of timers) clearTimeout(timer);
    });
  }
}

class Watch {
  readonly response: ServerResponse;
  readonly #selection: Selection;
  readonly #matches: Matcher;

  constructor(selection: Selection, matches: Matcher, response: ServerResponse) {
    this.#selection = selection;
    this.#matches = matches;
    this.response = response;
  }

  /** Writes a change of the store, as it looks to a client that sees only what the selectors match. */
  push({ type, resource, object, previous }: StoreEvent): void {
    if (resource !== this.#selection.type.resource) return;
    const isThere = type !== 'DELETED' && this.#matches(object);
    const wasThere = previous !== undefined && this.#matches(previous);
    if (isThere) this.#write(wasThere ? 'MODIFIED' : 'ADDED', object);
    else if (wasThere)
      this.#write('DELETED', {
        ...previous,
        metadata: { ...previous.metadata, resourceVersion: object.metadata.resourceVersion },
      });
  }

  add(object: KubeObject): void {
    if (this.#matches(object)) this.#write('ADDED', object);
  }

  bookmark(revision: number): void {
    const { type, query } = this.#selection;
    if (!/^(?:true|1)$/.test(query.get('allowWatchBookmarks') ?? '')) return;
    const metadata = { resourceVersion: String(revision), creationTimestamp: null };
    const body = type.resource === 'pods' ? { spec: { containers: null }, status: {} } : { spec: {} };
    this.#write('BOOKMARK', { kind: type.kind, apiVersion: apiVersionOf(type), metadata, ...body });
  }

  fail({ body }: ApiFailure): void {
    this.#write('ERROR', body);
    this.response.end();
  }

  #write(type: string, object: object): void {
    this.response.write(`${JSON.stringify({ type, object })}\n`);
  }
}
