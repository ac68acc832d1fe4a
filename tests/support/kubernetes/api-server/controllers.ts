import { deleteObject } from './deletion.ts';
import type { PodSpec } from './pod-schema.ts';
import { updateQuotas } from './quota.ts';
import { RESOURCES } from './resources.ts';
import type { KubeObject, Store, StoreEvent } from './store.ts';

const PROTECTION = 'kubernetes.io/pvc-protection';

/**
 * Starts the controllers that follow the store: the garbage collector (dependents of a deleted owner), the protection
 * of claims that a Pod uses, the end of objects without finalizers, and the use of quotas.
 */
export function startControllers(store: Store): void {
  store.subscribe((event) => {
    if (event.type === 'DELETED') collect(store, event.object);
    else collectOrphan(store, event);
    finish(store, event);
    protectClaims(store, event);
    if (['pods', 'persistentvolumeclaims', 'resourcequotas'].includes(event.resource))
      updateQuotas(store, event.object.metadata.namespace);
  });
}

/** Deletes the objects whose last owner is gone. */
function collect(store: Store, { metadata: { uid } }: KubeObject): void {
  for (const type of RESOURCES)
    for (const { metadata } of store.list(type.resource)) {
      const owners = metadata.ownerReferences ?? [];
      if (!owners.some((owner) => owner.uid === uid) || owners.some((owner) => exists(store, owner.uid))) continue;
      deleteObject(store, type, metadata.namespace, metadata.name, { preconditions: { uid: metadata.uid } });
    }
}

/** Deletes a new object of which no owner exists. Owners of kinds that the server does not have are taken to exist. */
function collectOrphan(store: Store, { type, resource, object: { metadata } }: StoreEvent): void {
  const owners = metadata.ownerReferences ?? [];
  if (type !== 'ADDED' || owners.length === 0) return;
  if (owners.some(({ kind, uid }) => RESOURCES.every((known) => known.kind !== kind) || exists(store, uid))) return;
  const own = RESOURCES.find((known) => known.resource === resource);
  if (own) deleteObject(store, own, metadata.namespace, metadata.name, { preconditions: { uid: metadata.uid } });
}

function exists(store: Store, uid: string): boolean {
  return RESOURCES.some(({ resource }) => store.list(resource).some(({ metadata }) => metadata.uid === uid));
}

/** Removes a terminating object when its last finalizer is gone. Pods go when their kubelet says so. */
function finish(store: Store, { type, resource, object: { metadata } }: StoreEvent): void {
  if (type === 'DELETED' || resource === 'pods' || metadata.deletionTimestamp === undefined) return;
  if ((metadata.finalizers ?? []).length === 0) store.remove(resource, metadata.namespace, metadata.name);
}

/** Takes the protection from terminating claims that no Pod uses. */
function protectClaims(store: Store, { resource }: StoreEvent): void {
  if (resource !== 'pods' && resource !== 'persistentvolumeclaims') return;
  for (const { metadata } of store.list('persistentvolumeclaims')) {
    if (metadata.deletionTimestamp === undefined || !metadata.finalizers?.includes(PROTECTION)) continue;
    if (store.list('pods', metadata.namespace).some((pod) => uses(pod, metadata.name))) continue;
    store.update('persistentvolumeclaims', metadata.namespace, metadata.name, (claim) => ({
      ...claim,
      metadata: {
        ...claim.metadata,
        finalizers: (claim.metadata.finalizers ?? []).filter((one) => one !== PROTECTION),
      },
    }));
  }
}

function uses({ metadata, spec, status }: KubeObject, claim: string): boolean {
  if (['Succeeded', 'Failed'].includes((status as { phase?: string }).phase ?? '')) return false;
  return ((spec as PodSpec).volumes ?? []).some(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName === claim || (ephemeral !== undefined && `${metadata.name}-${name}` === claim),
  );
}
