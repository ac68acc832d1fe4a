import type { Container, PodSpec, Toleration, Volume } from './pod-schema.ts';
import { restrictedViolations } from './pod-security.ts';
import { validateClaim, validateMetadata, validatePodSpec } from './pod-validation.ts';
import { quotaRefusal } from './quota.ts';
import type { Resource } from './resources.ts';
import { forbidden, invalid, notFound } from './status.ts';
import type { NewObject, Store } from './store.ts';

/** What the namespaces and the cluster have, beside the objects of the store. */
export interface Surroundings {
  /** Names of service accounts, besides `default`. */
  serviceAccounts: Set<string>;
  /** Priorities by the names of their classes. */
  priorityClasses: Map<string, number>;
  runtimeClasses: Set<string>;
  /** False turns Pod Security off, as a namespace without labels for it. */
  restricted: boolean;
}

const PRIORITIES = new Map([
  ['system-cluster-critical', 2_000_000_000],
  ['system-node-critical', 2_000_001_000],
]);

/** Admits a new object in the order of the real server. Returns it as it is stored, or throws the refusal. */
export function admit(type: Resource, object: NewObject, store: Store, surroundings: Surroundings): NewObject {
  const { namespace, name } = object.metadata;
  if (namespace !== undefined) requireNamespace(type, namespace, name, store);
  if (type.resource !== 'pods') {
    const ofClaim = type.resource === 'persistentvolumeclaims' ? validateClaim(object.spec as object) : [];
    const causes = [...validateMetadata(object.metadata), ...ofClaim];
    if (causes.length > 0) throw invalid(type, name, causes);
    return withinQuota(type, prepared(type, object), store);
  }
  const spec = mutated(type, object, surroundings);
  const causes = [...validateMetadata(object.metadata), ...validatePodSpec(spec)];
  if (causes.length > 0) throw invalid(type, name, causes);
  const violation = surroundings.restricted && restrictedViolations(spec, object.metadata.annotations);
  if (violation) throw forbidden(type, name, violation);
  const metadata = { ...object.metadata, generation: 1 };
  const status = { phase: 'Pending', qosClass: qosOf(spec) };
  return withinQuota(type, { ...object, metadata, spec: { ...spec }, status }, store);
}

function requireNamespace(type: Resource, namespace: string, name: string, store: Store): void {
  const found = store.get('namespaces', undefined, namespace);
  if (!found) throw notFound({ group: '', resource: 'namespaces', kind: 'Namespace' }, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw forbidden(type, name, why);
}

function withinQuota(type: Resource, object: NewObject, store: Store): NewObject {
  const refusal = quotaRefusal(store, type.resource, object);
  if (refusal !== undefined) throw forbidden(type, object.metadata.name, refusal);
  return object;
}

function prepared({ resource }: Resource, object: NewObject): NewObject {
  if (resource !== 'persistentvolumeclaims') return object;
  const finalizers = [...(object.metadata.finalizers ?? []), 'kubernetes.io/pvc-protection'];
  return { ...object, metadata: { ...object.metadata, finalizers }, status: { phase: 'Pending' } };
}

/** Does what the mutating plugins do: ServiceAccount, Priority, RuntimeClass and DefaultTolerationSeconds. */
function mutated(type: Resource, object: NewObject, surroundings: Surroundings): PodSpec {
  const { namespace = '', name } = object.metadata;
  const spec = object.spec as PodSpec;
  const account = spec.serviceAccountName ?? spec.serviceAccount ?? 'default';
  if (account !== 'default' && !surroundings.serviceAccounts.has(account)) {
    const why = `error looking up service account ${namespace}/${account}: serviceaccount "${account}" not found`;
    throw forbidden(type, name, why);
  }
  const { priorityClassName, runtimeClassName } = spec;
  const priority = [PRIORITIES, surroundings.priorityClasses].map((known) => known.get(priorityClassName ?? ''));
  if (priorityClassName !== undefined && priority.every((value) => value === undefined))
    throw forbidden(type, name, `no PriorityClass with name ${priorityClassName} was found`);
  if (runtimeClassName !== undefined && !surroundings.runtimeClasses.has(runtimeClassName))
    throw forbidden(type, name, `pod rejected: RuntimeClass "${runtimeClassName}" not found`);
  return {
    ...withToken(spec),
    serviceAccountName: account,
    serviceAccount: account,
    priority: priority.find((value) => value !== undefined) ?? 0,
    preemptionPolicy: 'PreemptLowerPriority',
    tolerations: withDefaults(spec.tolerations ?? []),
  };
}

/** Mounts a token of the service account, unless the Pod asks for none. */
function withToken(spec: PodSpec): PodSpec {
  if (spec.automountServiceAccountToken === false) return spec;
  const name = 'kube-api-access-tests';
  const mountPath = '/var/run/secrets/kubernetes.io/serviceaccount';
  const mounting = (container: Container): Container => ({
    ...container,
    volumeMounts: [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath }],
  });
  return {
    ...spec,
    volumes: [...(spec.volumes ?? []), { name, projected: { defaultMode: 420, sources: [] } } as Volume],
    containers: spec.containers.map(mounting),
    initContainers: spec.initContainers?.map(mounting),
  };
}

function withDefaults(tolerations: readonly Toleration[]): Toleration[] {
  const missing = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].filter(
    (taint) =>
      !tolerations.some(
        ({ key, effect }) => (key === undefined || key === taint) && (effect === undefined || effect === 'NoExecute'),
      ),
  );
  const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }));
  return [...tolerations, ...added];
}

function qosOf({ containers, initContainers = [] }: PodSpec): string {
  const all = [...containers, ...initContainers].map(({ resources }) => resources);
  const names = ['cpu', 'memory'];
  const isSet = (amounts: Record<string, string> | undefined) => names.some((name) => amounts?.[name] !== undefined);
  if (!all.some(({ limits, requests }) => isSet(limits) || isSet(requests))) return 'BestEffort';
  const isGuaranteed = all.every(({ limits = {}, requests = {} }) =>
    names.every((name) => limits[name] !== undefined && limits[name] === requests[name]),
  );
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}
