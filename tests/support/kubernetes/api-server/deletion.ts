import { z } from 'zod';
import type { PodSpec } from './pod-schema.ts';
import type { Resource } from './resources.ts';
import { badRequest, conflict, notFound } from './status.ts';
import { type KubeObject, type Store, timestamp } from './store.ts';

const optionsSchema = z.strictObject({
  apiVersion: z.string().optional(),
  kind: z.literal('DeleteOptions').optional(),
  gracePeriodSeconds: z.number().int().optional(),
  preconditions: z.strictObject({ uid: z.string().optional(), resourceVersion: z.string().optional() }).optional(),
  propagationPolicy: z.enum(['Background', 'Foreground', 'Orphan']).optional(),
  orphanDependents: z.boolean().optional(),
  dryRun: z.array(z.string()).optional(),
});

export type DeleteOptions = z.output<typeof optionsSchema>;

export function parseDeleteOptions(body: unknown, query: URLSearchParams): DeleteOptions {
  const grace = query.get('gracePeriodSeconds');
  const fromQuery = grace === null ? {} : { gracePeriodSeconds: Number(grace) };
  const parsed = optionsSchema.safeParse({ ...fromQuery, ...((body as object | undefined) ?? {}) });
  if (parsed.success) return parsed.data;
  throw badRequest(`converting to DeleteOptions: ${parsed.error.issues[0]?.message}`);
}

/** Deletes an object, or marks a Pod that runs as terminating. Returns what the server replies. */
export function deleteObject(
  store: Store,
  type: Resource,
  namespace: string | undefined,
  name: string,
  options: DeleteOptions,
): object {
  const current = store.get(type.resource, namespace, name);
  if (!current) throw notFound(type, name);
  requirePreconditions(type, current, options);
  const grace = type.resource === 'pods' ? graceOf(current, options) : 0;
  const isKept = grace > 0 || (current.metadata.finalizers ?? []).length > 0;
  const deleted = isKept
    ? store.update(type.resource, namespace, name, (object) => terminating(object, grace))
    : store.remove(type.resource, namespace, name);
  if (deleted && (isKept || type.resource !== 'leases')) return deleted;
  const { group, resource: kind } = type;
  const details = { name, ...(group !== '' && { group }), kind, uid: current.metadata.uid };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}

function requirePreconditions(type: Resource, { metadata }: KubeObject, { preconditions }: DeleteOptions): void {
  const { uid, resourceVersion } = preconditions ?? {};
  // The real server names the kind here, not the resource.
  const named = { ...type, resource: type.kind };
  if (uid !== undefined && uid !== metadata.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid})`;
    throw conflict(named, metadata.name, `${why}. The object might have been deleted and then recreated`);
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    const inRecord = `the ResourceVersion in record (${metadata.resourceVersion})`;
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match ${inRecord}`;
    throw conflict(named, metadata.name, `${why}. The object might have been modified`);
  }
}

/** Returns the seconds that a Pod has to end. A Pod on no node, or one that has ended, goes at once. */
function graceOf({ spec, status, metadata }: KubeObject, { gracePeriodSeconds }: DeleteOptions): number {
  const { nodeName, terminationGracePeriodSeconds } = spec as PodSpec;
  const { phase } = status as { phase: string };
  if (nodeName === undefined || phase === 'Succeeded' || phase === 'Failed') return 0;
  const asked = gracePeriodSeconds ?? terminationGracePeriodSeconds;
  const wanted = asked < 0 ? 1 : asked;
  return Math.min(wanted, metadata.deletionGracePeriodSeconds ?? wanted);
}

/** Marks an object as terminating. A second deletion can only shorten the time of the first. */
function terminating(object: KubeObject, grace: number): KubeObject {
  const { metadata } = object;
  const before = metadata.deletionGracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined && (before ?? 0) <= grace) return object;
  const began = metadata.deletionTimestamp
    ? Date.parse(metadata.deletionTimestamp) - (before ?? 0) * 1_000
    : Date.now();
  const at = new Date(Math.max(Date.now(), began + grace * 1_000));
  const generation =
    metadata.generation === undefined || before !== undefined ? {} : { generation: metadata.generation + 1 };
  const marks = { deletionTimestamp: timestamp(at), deletionGracePeriodSeconds: grace };
  return { ...object, metadata: { ...metadata, ...generation, ...marks } };
}
