import { SCOPES, type Scope } from '@shellfleet/protocol';

/** One route of the API, as its OpenAPI document has it. */
export interface ApiOperation {
  method: string;
  /** Path with `{name}` for a part. */
  path: string;
  /** Scopes of which one is sufficient. Empty if every key is. */
  scopes: Scope[];
}

/** Reads every operation of the OpenAPI document, and the paths beside `/v1`, which it leaves out. */
export async function readOperations(url: string, key: string): Promise<ApiOperation[]> {
  const reply = await fetch(`${url}/openapi.json`, { headers: { authorization: `Bearer ${key}` } });
  const { paths } = (await reply.json()) as { paths: Record<string, Record<string, { description: string }>> };
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { description }]) => ({
      ...{ method: method.toUpperCase(), path, scopes: toScopes(description) },
    })),
  );
  return [
    ...documented,
    ...['/openapi.json', '/readyz'].map((path): ApiOperation => ({ method: 'GET', path, scopes: [] })),
    { method: 'GET', path: '/metrics', scopes: ['admin'] },
  ];
}

function toScopes(description: string): Scope[] {
  if (description.endsWith('Any key may do this.')) return [];
  const [, names] = /Needs the scope ([a-z ]+)\.$/.exec(description) ?? [];
  const scopes = SCOPES.filter((scope) => names?.split(' or ').includes(scope));
  if (scopes.length === 0) throw new Error(`An operation names no scope: ${description}`);
  return scopes;
}

/** Returns the path of an operation with the ids of real things, by the first part of the path below `/v1`. */
export function toRealPath({ path }: ApiOperation, ids: Readonly<Record<string, string>>): string {
  const area = path.split('/')[2] ?? '';
  return path
    .replace('{path}', ids.path ?? 'unknown')
    .replaceAll(/\{\w+\}/g, encodeURIComponent(ids[area] ?? 'unknown'));
}
