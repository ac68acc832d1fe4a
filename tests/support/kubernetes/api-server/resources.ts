import type { z } from 'zod';
import { claimSchema, leaseSchema } from './metadata-schema.ts';
import { podSchema } from './pod-schema.ts';
import { badRequest, type ResourceName } from './status.ts';

/** One resource that the server has. */
export interface Resource extends ResourceName {
  version: string;
  singular: string;
  shortNames?: string[];
  namespaced: boolean;
  /** Verbs that the server answers for it. Tests change the rest through the store. */
  verbs: string[];
  schema?: z.ZodType;
}

const READING = ['get', 'list', 'watch'];
const ALL = ['create', 'delete', ...READING, 'patch'];

export const RESOURCES: readonly Resource[] = [
  { ...core('pods', 'Pod', ['po']), namespaced: true, verbs: ALL, schema: podSchema },
  {
    ...core('persistentvolumeclaims', 'PersistentVolumeClaim', ['pvc']),
    namespaced: true,
    verbs: ALL,
    schema: claimSchema,
  },
  { ...core('resourcequotas', 'ResourceQuota', ['quota']), namespaced: true, verbs: READING },
  { ...core('namespaces', 'Namespace', ['ns']), namespaced: false, verbs: READING },
  { ...core('nodes', 'Node', ['no']), namespaced: false, verbs: READING },
  {
    group: 'coordination.k8s.io',
    version: 'v1',
    resource: 'leases',
    singular: 'lease',
    kind: 'Lease',
    namespaced: true,
    verbs: ALL,
    schema: leaseSchema,
  },
];

function core(resource: string, kind: string, shortNames: string[]) {
  return { group: '', version: 'v1', resource, singular: kind.toLowerCase(), kind, shortNames };
}

export const apiVersionOf = ({ group, version }: Resource) => (group === '' ? version : `${group}/${version}`);

/** Parses an object that a request sent, with defaults. Refuses unknown fields, as fieldValidation=Strict does. */
export function decode(type: Resource, body: unknown): Record<string, unknown> {
  const { kind, version } = type;
  const refuse = (why: string) => badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`);
  const { apiVersion, kind: sentKind } = (body ?? {}) as { apiVersion?: string; kind?: string };
  if (apiVersion !== apiVersionOf(type) || sentKind !== kind)
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${apiVersionOf(type)})`,
    );
  const parsed = type.schema?.safeParse(body);
  if (parsed === undefined) throw new Error(`the API server of the tests creates no ${kind}`);
  if (parsed.success) return parsed.data as Record<string, unknown>;
  const unknown = parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => `unknown field "${pathOf([...issue.path, key])}"`)
      : [],
  );
  if (unknown.length > 0) throw refuse(`strict decoding error: ${unknown.join(', ')}`);
  const [issue] = parsed.error.issues;
  throw refuse(`json: cannot unmarshal into Go struct field ${pathOf(issue?.path ?? [])}: ${issue?.message}`);
}

/** Writes a path as in `spec.containers[0].image`. */
function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (sum, part) =>
      typeof part === 'number' ? `${sum}[${part}]` : sum === '' ? String(part) : `${sum}.${String(part)}`,
    '',
  );
}
