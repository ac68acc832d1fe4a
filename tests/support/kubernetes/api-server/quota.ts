import type { PodSpec } from './pod-schema.ts';
import { amountOf, formatQuantity, parseQuantity, type Quantity } from './quantity.ts';
import type { KubeObject, Store } from './store.ts';

type Amounts = Record<string, Quantity>;

/** Returns why the quotas of a namespace refuse a new object, in the words of the admission plugin. */
export function quotaRefusal(
  store: Store,
  resource: string,
  object: { metadata: { namespace?: string }; spec?: unknown },
) {
  const { namespace } = object.metadata;
  for (const quota of store.list('resourcequotas', namespace)) {
    const hard = hardOf(quota);
    const missing = resource === 'pods' ? missingIn(object.spec as PodSpec, Object.keys(hard)) : [];
    if (missing.length > 0) return `failed quota: ${quota.metadata.name}: must specify ${missing.join('; ')}`;
    const requested = pick(usageOf(resource, object), Object.keys(hard));
    const used = usedIn(store, namespace, Object.keys(hard));
    const exceeded = Object.keys(requested).filter(
      (name) => (used[name]?.value ?? 0) + (requested[name]?.value ?? 0) > (hard[name]?.value ?? 0),
    );
    if (exceeded.length === 0) continue;
    const print = (amounts: Amounts) =>
      exceeded
        .toSorted()
        .map((name) => `${name}=${formatQuantity(amounts[name] ?? { value: 0, isBinary: false })}`)
        .join(',');
    const parts = [`requested: ${print(requested)}`, `used: ${print(used)}`, `limited: ${print(hard)}`];
    return `exceeded quota: ${quota.metadata.name}, ${parts.join(', ')}`;
  }
  return undefined;
}

/** Writes into the status of each quota of a namespace what is used of it. */
export function updateQuotas(store: Store, namespace: string | undefined): void {
  for (const { metadata } of store.list('resourcequotas', namespace))
    store.update('resourcequotas', namespace, metadata.name, (quota) => {
      const { hard } = quota.spec as { hard: Record<string, string> };
      const used = usedIn(store, namespace, Object.keys(hard));
      const written = Object.fromEntries(
        Object.keys(hard).map((name) => [name, formatQuantity(used[name] as Quantity)]),
      );
      return { ...quota, status: { hard, used: written } };
    });
}

function hardOf({ spec }: KubeObject): Amounts {
  const { hard = {} } = spec as { hard?: Record<string, string> };
  return Object.fromEntries(
    Object.entries(hard).map(([name, text]) => [name, parseQuantity(text) ?? { value: 0, isBinary: false }]),
  );
}

function usedIn(store: Store, namespace: string | undefined, names: readonly string[]): Amounts {
  const used: Amounts = Object.fromEntries(names.map((name) => [name, { value: 0, isBinary: false }]));
  for (const resource of ['pods', 'persistentvolumeclaims'])
    for (const object of store.list(resource, namespace)) {
      if (hasEnded(object)) continue;
      for (const [name, { value, isBinary }] of Object.entries(pick(usageOf(resource, object), names))) {
        const sum = used[name] as Quantity;
        used[name] = { value: sum.value + value, isBinary: sum.isBinary || isBinary };
      }
    }
  return used;
}

function hasEnded({ status }: KubeObject): boolean {
  return ['Succeeded', 'Failed'].includes((status as { phase?: string } | undefined)?.phase ?? '');
}

const pick = (amounts: Amounts, names: readonly string[]) =>
  Object.fromEntries(Object.entries(amounts).filter(([name]) => names.includes(name)));

/** Returns what an object takes of a quota, under every name that a quota may have for it. */
function usageOf(resource: string, { spec }: { spec?: unknown; metadata: object }): Amounts {
  const one = { value: 1, isBinary: false };
  if (resource === 'persistentvolumeclaims') {
    const { resources } = spec as { resources?: { requests?: Record<string, string> } };
    const storage = parseQuantity(resources?.requests?.storage ?? '0') ?? { value: 0, isBinary: false };
    return { persistentvolumeclaims: one, 'count/persistentvolumeclaims': one, 'requests.storage': storage };
  }
  const usage: Amounts = { pods: one, 'count/pods': one };
  for (const [kind, amounts] of Object.entries(podResources(spec as PodSpec)))
    for (const [name, amount] of Object.entries(amounts)) {
      usage[`${kind}.${name}`] = amount;
      if (kind === 'requests' && ['cpu', 'memory', 'ephemeral-storage'].includes(name)) usage[name] = amount;
    }
  return usage;
}

/** Returns what the scheduler counts of a Pod. */
export const podRequests = (spec: PodSpec): Amounts => podResources(spec).requests;

/** Returns the requests and limits of a whole Pod: the sum of its containers, or the largest init container. */
function podResources({ containers, initContainers = [], overhead = {} }: PodSpec) {
  const total = (kind: 'requests' | 'limits'): Amounts => {
    const amounts: Amounts = {};
    const add = (name: string, text: string, combine: (a: number, b: number) => number) => {
      const { value, isBinary } = parseQuantity(text) ?? { value: 0, isBinary: false };
      const before = amounts[name] ?? { value: 0, isBinary };
      amounts[name] = { value: combine(before.value, value), isBinary: before.isBinary };
    };
    for (const { resources } of containers)
      for (const [name, text] of Object.entries(resources[kind] ?? {})) add(name, text, (a, b) => a + b);
    for (const { resources } of initContainers)
      for (const [name, text] of Object.entries(resources[kind] ?? {})) add(name, text, Math.max);
    for (const [name, text] of Object.entries(overhead)) if (amountOf(text) > 0) add(name, text, (a, b) => a + b);
    return amounts;
  };
  return { requests: total('requests'), limits: total('limits') };
}

/** Lists compute resources that a quota counts and a container does not set, as `limits.cpu for: shell`. */
function missingIn({ containers, initContainers = [] }: PodSpec, names: readonly string[]): string[] {
  return names.toSorted().flatMap((name) => {
    const [, kind = 'requests', resource = ''] = /^(?:(requests|limits)\.)?(cpu|memory)$/.exec(name) ?? [];
    if (resource === '') return [];
    const without = [...containers, ...initContainers]
      .filter(({ resources }) => resources[kind as 'requests' | 'limits']?.[resource] === undefined)
      .map((container) => container.name)
      .toSorted();
    return without.length === 0 ? [] : [`${name} for: ${without.join(',')}`];
  });
}
