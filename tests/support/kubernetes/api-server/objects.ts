import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { admit, type Surroundings } from './admission.ts';
import { deleteObject, parseDeleteOptions } from './deletion.ts';
import type { Listing } from './listing.ts';
import { patched } from './patch.ts';
import type { PodSpec } from './pod-schema.ts';
import { validateMetadata } from './pod-validation.ts';
import { type ObjectRequest, randomSuffix } from './requests.ts';
import { decode, type Resource } from './resources.ts';
import {
  alreadyExists,
  badRequest,
  conflict,
  field,
  invalid,
  MODIFIED,
  methodNotAllowed,
  notFound,
  unknownPath,
} from './status.ts';
import type { KubeObject, Metadata, NewObject, Store } from './store.ts';

/** Request for objects with its body. */
export interface Call {
  request: ObjectRequest;
  query: URLSearchParams;
  contentType: string;
  body: unknown;
}

export interface Objects {
  store: Store;
  listing: Listing;
  surroundings: Surroundings;
}

/** Answers every request for objects but watches. Returns the HTTP status and the body, or throws the refusal. */
export function answer(call: Call, objects: Objects): { code: number; body: object } {
  const { request, query } = call;
  const { type, verb, namespace, name } = request;
  if (!type || request.subresource !== undefined) throw unknownPath();
  if (!type.verbs.includes(verb)) throw methodNotAllowed();
  const { store, listing } = objects;
  const place = type.namespaced ? namespace : undefined;
  switch (verb) {
    case 'list':
      return { code: 200, body: listing.list({ type, namespace: place, query }) };
    case 'get':
      return { code: 200, body: found(store, type, place, name) };
    case 'create':
      return { code: 201, body: create(call, type, objects) };
    case 'patch':
      return { code: 200, body: patch(call, type, objects) };
    case 'delete':
      return { code: 200, body: deleteObject(store, type, place, name, parseDeleteOptions(call.body, query)) };
    default:
      throw methodNotAllowed();
  }
}

function found(store: Store, type: Resource, namespace: string | undefined, name: string): KubeObject {
  const object = store.get(type.resource, namespace, name);
  if (!object) throw notFound(type, name);
  return object;
}

function create({ request, body, query }: Call, type: Resource, { store, surroundings }: Objects): object {
  if (!request.namespace) throw badRequest('namespace is required');
  const decoded = decode(type, body) as unknown as { metadata: Partial<Metadata> & { generateName?: string } };
  const { name, generateName, namespace = request.namespace, labels, annotations } = decoded.metadata;
  if (namespace !== request.namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  const metadata = {
    ...(generateName !== undefined && { generateName }),
    name: name ?? (generateName === undefined ? '' : generateName + randomSuffix(randomUUID())),
    namespace,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(decoded.metadata.finalizers && { finalizers: decoded.metadata.finalizers }),
    ...(decoded.metadata.ownerReferences && { ownerReferences: decoded.metadata.ownerReferences }),
  };
  const object = admit(type, { ...(decoded as unknown as NewObject), metadata }, store, surroundings);
  if (store.get(type.resource, namespace, metadata.name)) throw alreadyExists(type, metadata.name);
  if (query.get('dryRun') === 'All') return object;
  // The client's object and the stored one share no memory.
  return store.create(type.resource, structuredClone(object)) as object;
}

function patch({ request, body, contentType, query }: Call, type: Resource, { store }: Objects): object {
  const { name, namespace } = request;
  const current = found(store, type, namespace, name);
  const wanted = patched(current, contentType, body);
  const { resourceVersion, uid } = wanted.metadata;
  if (uid !== undefined && uid !== current.metadata.uid)
    throw conflict(
      type,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid}`,
    );
  if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion)
    throw conflict(type, name, MODIFIED);
  decode(type, wanted);
  const changed = keepingServers(current, wanted);
  const causes = [...validateMetadata(changed.metadata), ...immutable(type, current, changed)];
  if (causes.length > 0) throw invalid(type, name, causes);
  if (query.get('dryRun') === 'All') return changed;
  return store.update(type.resource, namespace, name, () => changed) as object;
}

/** Returns the patched object with the fields that only the server writes as they were. */
function keepingServers(current: KubeObject, wanted: KubeObject): KubeObject {
  const { labels, annotations, finalizers, ownerReferences } = wanted.metadata;
  const { labels: _l, annotations: _a, finalizers: _f, ownerReferences: _o, ...own } = current.metadata;
  const metadata = {
    ...own,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(finalizers && { finalizers }),
    ...(ownerReferences && { ownerReferences }),
  };
  const status = current.status === undefined ? {} : { status: current.status };
  return { ...wanted, metadata, ...status };
}

const POD_UPDATE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,' +
  '`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),' +
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/** Refuses changes of a spec. The server of the tests allows fewer of them than the real one. */
function immutable({ resource }: Resource, { spec }: KubeObject, changed: KubeObject) {
  if (resource === 'leases' || isDeepStrictEqual(spec, changed.spec)) return [];
  if (resource !== 'pods') return [field.forbidden('spec', 'spec is immutable after creation')];
  const { activeDeadlineSeconds: before, ...rest } = spec as PodSpec;
  const { activeDeadlineSeconds: after, ...changedRest } = changed.spec as PodSpec;
  if (!isDeepStrictEqual(rest, changedRest)) return [field.forbidden('spec', POD_UPDATE)];
  if (before !== undefined && (after === undefined || after > before))
    return [field.invalid('spec.activeDeadlineSeconds', after ?? null, 'must be less than or equal to previous value')];
  return [];
}
