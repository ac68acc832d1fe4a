import { apiVersionOf, type Resource } from './resources.ts';
import { type Matcher, parseFieldSelector, parseLabelSelector } from './selectors.ts';
import { badRequest, expired, tooLarge } from './status.ts';
import type { KubeObject, Store } from './store.ts';

/** Parameters of a request for the objects of a namespace, or of all. */
export interface Selection {
  type: Resource;
  namespace?: string | undefined;
  query: URLSearchParams;
}

const TOO_OLD =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
  'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
  'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
  'deleted between the time the first chunk was returned and now may show up in the list.';

/** Compiles both selectors of a request. */
export function matcherOf({ type, query }: Selection): Matcher {
  const matchesLabels = parseLabelSelector(query.get('labelSelector') ?? '');
  const matchesFields = parseFieldSelector(type.resource, query.get('fieldSelector') ?? '');
  return (object) => matchesLabels(object) && matchesFields(object);
}

/** Lists that a client reads in parts: each continues the state of the first part, until the history is compacted. */
export class Listing {
  /** States of first parts, by revision and selection. */
  readonly #snapshots = new Map<string, KubeObject[]>();
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  list(selection: Selection): object {
    const { type, query } = selection;
    const matches = matcherOf(selection);
    const limit = Number(query.get('limit') ?? 0);
    const token = query.get('continue');
    this.#requireKnown(query.get('resourceVersion'));
    const { revision, start, all } = token ? this.#resume(selection, token) : this.#begin(selection);
    const rest = all.filter((object) => keyOf(object) > start && matches(object));
    const items = limit > 0 ? rest.slice(0, limit) : rest;
    const metadata: Record<string, unknown> = { resourceVersion: String(revision) };
    const last = items.at(-1);
    if (items.length < rest.length && last) {
      this.#snapshots.set(snapshotOf(selection, revision), all);
      metadata.continue = encode(revision, keyOf(last));
      if (!query.get('labelSelector') && !query.get('fieldSelector'))
        metadata.remainingItemCount = rest.length - items.length;
    }
    // Items of a list of the real server have neither kind nor apiVersion.
    const bare = items.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item);
    return { kind: `${type.kind}List`, apiVersion: apiVersionOf(type), metadata, items: bare };
  }

  #requireKnown(resourceVersion: string | null): void {
    if (resourceVersion === null || resourceVersion === '') return;
    const wanted = Number(resourceVersion);
    if (!Number.isInteger(wanted)) throw badRequest(`Invalid value: "${resourceVersion}": invalid resource version`);
    if (wanted > this.#store.revision) throw tooLarge(wanted, this.#store.revision);
  }

  #begin({ type, namespace }: Selection) {
    return { revision: this.#store.revision, start: '', all: this.#store.list(type.resource, namespace) };
  }

  /** A token of revision -1 continues with the present state, which may be another than that of the first part. */
  #resume(selection: Selection, token: string) {
    const { rv, start } = decodeToken(token);
    if (rv === -1) return { ...this.#begin(selection), start };
    const all = this.#snapshots.get(snapshotOf(selection, rv));
    if (all === undefined || rv < this.#store.compactedAt) throw expired(TOO_OLD, encode(-1, start));
    return { revision: rv, start, all };
  }
}

const snapshotOf = ({ type, namespace }: Selection, revision: number) => `${revision}/${type.resource}/${namespace}`;

const keyOf = ({ metadata }: KubeObject) => `${metadata.namespace ?? ''}/${metadata.name}`;

const encode = (rv: number, start: string) =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start })).toString('base64url');

function decodeToken(token: string): { rv: number; start: string } {
  try {
    return JSON.parse(Buffer.from(token, 'base64url').toString()) as { rv: number; start: string };
  } catch {
    throw badRequest('continue key is not valid: illegal base64 data');
  }
}
