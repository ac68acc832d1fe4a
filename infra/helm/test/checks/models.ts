import type { ChartTools } from '../../../../scripts/testing/chart-tools.ts';
import type { ChartObject } from '../support/render-chart.ts';

const PACKAGES: Record<string, string> = {
  'keda.sh/v1alpha1': '@kubernetes-models/keda',
  'monitoring.coreos.com/v1': '@kubernetes-models/prometheus-operator',
};

type Model = { prototype: { validate(this: object): void } };

/** Returns what the schemas of Kubernetes refuse in the objects, and fields that the schemas do not have. */
export async function findModelFaults(tools: ChartTools, objects: readonly ChartObject[]): Promise<string[]> {
  return (await Promise.all(objects.map((object) => checkObject(tools, object)))).flat();
}

async function checkObject({ load }: ChartTools, object: ChartObject): Promise<string[]> {
  const { apiVersion, kind } = object;
  const name = `${kind} ${object.metadata?.name}`;
  const module = `${PACKAGES[apiVersion] ?? 'kubernetes-models'}/${apiVersion}/${kind}`;
  const models = await load<Record<string, Model>>(module).catch(() => undefined);
  const model = models?.[kind];
  if (model === undefined) return [`${name}: there is no such kind in ${apiVersion}`];
  const unread = new Set<string>();
  try {
    model.prototype.validate.call(notingReads(object, '', unread));
  } catch (error) {
    return [`${name}: ${(error as Error).message}`];
  }
  return [...unread].map((path) => `${name}: there is no field ${path}`);
}

/**
 * Returns the value, and keeps the paths of its fields that nobody has read in `unread`. The schemas allow unknown
 * fields, as the API server did once; it refuses them for helm today. A field that a schema has is read by its check.
 */
function notingReads<T extends object>(value: T, path: string, unread: Set<string>): T {
  const children = new Map<string, unknown>();
  for (const [key, child] of Object.entries(value)) {
    const childPath = `${path}${Array.isArray(value) ? `[${key}]` : `${path && '.'}${key}`}`;
    unread.add(childPath);
    children.set(key, typeof child === 'object' && child !== null ? notingReads(child, childPath, unread) : child);
  }
  return new Proxy(value, {
    get(target, key, receiver) {
      if (typeof key === 'symbol' || !children.has(key)) return Reflect.get(target, key, receiver);
      unread.delete(`${path}${Array.isArray(value) ? `[${key}]` : `${path && '.'}${key}`}`);
      return children.get(key);
    },
  });
}
