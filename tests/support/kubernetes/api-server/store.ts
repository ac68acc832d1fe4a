import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

export interface Metadata {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  [field: string]: unknown;
}

/** Object that has no uid, resource version and creation time yet. */
export type NewObject = Omit<KubeObject, 'metadata'> & {
  apiVersion: string;
  kind: string;
  metadata: Partial<Metadata> & { name: string };
};

export interface StoreEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  revision: number;
  resource: string;
  /** The object after the change. After a deletion: as it was, with the revision of the deletion. */
  object: KubeObject;
  previous?: KubeObject;
}

// Invariants
// REVISIONS-1. A stored object is never changed in place, so readers and events may keep it.
// REVISIONS-2. Each change has its own revision, and listeners receive the changes in the order of their revisions.

/** Objects of all resources with one counter of revisions and the history of changes, as etcd keeps them. */
export class Store {
  #revision = 1_000;
  #compactedAt = 0;
  #history: StoreEvent[] = [];
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #listeners = new Set<(event: StoreEvent) => void>();

  get revision(): number {
    return this.#revision;
  }

  get compactedAt(): number {
    return this.#compactedAt;
  }

  get(resource: string, namespace: string | undefined, name: string): KubeObject | undefined {
    return this.#objects.get(resource)?.get(keyOf(namespace, name));
  }

  /** Returns the objects of a namespace, or of all, in the order of their keys. */
  list(resource: string, namespace?: string): KubeObject[] {
    return [...(this.#objects.get(resource) ?? [])]
      .filter(([, { metadata }]) => namespace === undefined || metadata.namespace === namespace)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => object);
  }

  /** Stores a new object. Returns undefined if the name is taken. */
  create(resource: string, object: NewObject): KubeObject | undefined {
    const { namespace, name } = object.metadata;
    if (this.get(resource, namespace, name)) return undefined;
    const revision = ++this.#revision;
    const created = withRevision(
      {
        ...object,
        metadata: {
          ...object.metadata,
          uid: randomUUID(),
          resourceVersion: '',
          creationTimestamp: timestamp(),
        },
      },
      revision,
    );
    this.#put(resource, created);
    this.#publish({ type: 'ADDED', revision, resource, object: created });
    return created;
  }

  /**
   * Replaces an object by what `change` returns for it. Nothing happens when that is equal to the object. Returns the
   * stored object, or undefined if it does not exist.
   */
  update(
    resource: string,
    namespace: string | undefined,
    name: string,
    change: (current: KubeObject) => KubeObject,
  ): KubeObject | undefined {
    const previous = this.get(resource, namespace, name);
    if (!previous) return undefined;
    const changed = change(structuredClone(previous));
    if (isDeepStrictEqual(changed, previous)) return previous;
    const revision = ++this.#revision;
    const object = withRevision(changed, revision);
    this.#put(resource, object);
    this.#publish({ type: 'MODIFIED', revision, resource, object, previous });
    return object;
  }

  /** Removes an object. Returns it, or undefined if it does not exist. */
  remove(resource: string, namespace: string | undefined, name: string): KubeObject | undefined {
    const previous = this.get(resource, namespace, name);
    if (!previous) return undefined;
    const revision = ++this.#revision;
    this.#objects.get(resource)?.delete(keyOf(namespace, name));
    const object = withRevision(previous, revision);
    this.#publish({ type: 'DELETED', revision, resource, object, previous });
    return object;
  }

  /** Returns the changes of a resource after a revision, or undefined if they are compacted. */
  since(resource: string, revision: number): StoreEvent[] | undefined {
    if (revision < this.#compactedAt) return undefined;
    return this.#history.filter((event) => event.resource === resource && event.revision > revision);
  }

  /** Forgets the history up to now. */
  compact(): void {
    this.#compactedAt = this.#revision;
    this.#history = [];
  }

  /** Calls a listener for each change until the returned function is called. */
  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #put(resource: string, object: KubeObject): void {
    const objects = this.#objects.get(resource) ?? new Map<string, KubeObject>();
    objects.set(keyOf(object.metadata.namespace, object.metadata.name), object);
    this.#objects.set(resource, objects);
  }

  #waiting: StoreEvent[] = [];

  /** A listener may change the store: the events of its changes wait until all listeners have the present one. */
  #publish(event: StoreEvent): void {
    this.#history.push(event);
    this.#waiting.push(event);
    if (this.#waiting.length > 1) return;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      for (const listener of this.#listeners) listener(next);
      this.#waiting.shift();
    }
  }
}

/** Returns a time as the API writes it, without fractions of a second. */
export function timestamp(at = new Date()): string {
  return at.toISOString().replace(/\.\d+Z$/, 'Z');
}

const keyOf = (namespace: string | undefined, name: string) => (namespace ? `${namespace}/${name}` : name);

/** Returns an object with a revision, and as JSON has it: without undefined members. */
function withRevision(object: KubeObject, revision: number): KubeObject {
  const written = { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
  return JSON.parse(JSON.stringify(written)) as KubeObject;
}
