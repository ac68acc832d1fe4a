/** Thrown for a value that JSON cannot represent. The message names the place within the value and the reason. */
export class NotJsonError extends Error {}

const DEEPEST = 500;

/**
 * Serializes a value exactly. What JSON would drop or change (undefined, NaN, a Date) throws NotJsonError, with `name`.
 */
export function toJsonText(value: unknown, name: string): string {
  return JSON.stringify(toPlain(value, name, []));
}

/**
 * Returns a checked copy. Getters are read only once, so the values that are checked are also the values that are
 * serialized.
 */
function toPlain(value: unknown, path: string, ancestors: readonly object[]): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
    throw new NotJsonError(`${path} is ${value}`);
  }
  if (typeof value !== 'object') throw new NotJsonError(`${path} is ${describeType(value)}`);
  if (ancestors.includes(value)) throw new NotJsonError(`${path} holds itself`);
  if (ancestors.length >= DEEPEST) throw new NotJsonError(`it is nested more than ${DEEPEST} deep`);
  const within = [...ancestors, value];
  if (Array.isArray(value)) return Array.from(value, (item, index) => toPlain(item, `${path}[${index}]`, within));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new NotJsonError(`${path} is a ${prototype.constructor?.name || 'class instance'}`);
  }
  // An object without a prototype has no special keys, `__proto__` included.
  const copy = Object.create(null);
  for (const key of Object.keys(value)) {
    copy[key] = toPlain((value as Record<string, unknown>)[key], `${path}.${key}`, within);
  }
  return copy;
}

function describeType(value: unknown): string {
  if (value === undefined) return 'undefined';
  return typeof value === 'bigint' ? 'a BigInt' : `a ${typeof value}`;
}

/** Parses JSON from outside of the process, for a schema to check. Returns undefined for missing or other text. */
export function tryJson(text: string | null | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}
