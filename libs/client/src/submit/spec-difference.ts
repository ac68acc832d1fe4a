import { type ResolvedSessionSpec, toCanonicalJson } from '@shellfleet/protocol';

/** Returns the names of the fields in which two specs differ, without their values, which may be private. */
export function specDifference(a: ResolvedSessionSpec, b: ResolvedSessionSpec): string[] {
  return differing('', a, b).sort();
}

function differing(path: string, a: unknown, b: unknown): string[] {
  if (!isPlainObject(a) || !isPlainObject(b)) return same(a, b) ? [] : [path];
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].flatMap((name) => differing(path === '' ? name : `${path}.${name}`, a[name], b[name]));
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const same = (a: unknown, b: unknown) => a === b || toCanonicalJson({ v: a }) === toCanonicalJson({ v: b });
