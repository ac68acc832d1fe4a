// What a schema accepts without zod, by the function of `z` that makes it. See quick-zod.ts.

/** Of a schema of zod and of `z`. */
export type Members = Record<string, unknown>;
export type Accept = (value: unknown) => unknown;

/** The answer of a schema that does not accept a value itself. */
export const ASK = Symbol('ask zod');

export interface Known {
  /** Returns what the value is parsed to, or ASK. */
  accept: Accept;
  /** Decides what `min` and `max` compare. */
  sized?: 'length' | 'value' | undefined;
  /** Of an object. */
  shape?: Members | undefined;
  isStrict?: boolean | undefined;
  /** The values of a literal or an enum. */
  values?: readonly unknown[] | undefined;
  /** What an object does with such a field when it is absent. */
  absent: 'refused' | 'filled' | 'left out';
  /** Whether it may make a value of undefined. */
  fills: boolean;
}

/** A schema of which that is known, as opposed to one of zod. */
export abstract class KnownSchema {
  abstract readonly known: Known;
}

/** Of the schema that `z[name](...args)` makes. */
export function knownOf(name: string, [first, second]: readonly unknown[]): Known {
  switch (name) {
    case 'string':
      return { ...accepting(only((value) => typeof value === 'string')), sized: 'length' };
    case 'number':
      return { ...accepting(only(Number.isFinite)), sized: 'value' };
    case 'int':
      return { ...accepting(only(Number.isSafeInteger)), sized: 'value' };
    case 'boolean':
      return accepting(only((value) => typeof value === 'boolean'));
    case 'null':
      return accepting(only((value) => value === null));
    case 'unknown':
      return accepting((value) => value);
    case 'literal':
      return Array.isArray(first) ? UNKNOWN : { ...accepting(only((value) => value === first)), values: [first] };
    case 'enum':
      return Array.isArray(first) ? { ...accepting(only((value) => first.includes(value))), values: first } : UNKNOWN;
    case 'custom':
      return typeof first === 'function' ? accepting(only((value) => first(value) === true)) : UNKNOWN;
    case 'object':
    case 'strictObject': {
      const [shape, isStrict] = [first as Members, name === 'strictObject'];
      return { ...accepting(toObject(shape, isStrict)), shape, isStrict };
    }
    case 'array':
      return { ...accepting(toArray(first)), sized: 'length' };
    case 'record':
      return accepting(toRecord(first, second));
    case 'discriminatedUnion':
      return accepting(oneOf(String(first), second as readonly unknown[]));
    case 'instanceof':
      return accepting(ask);
    case 'union':
      return { ...accepting(ask), fills: (first as readonly unknown[]).some(mayFill) };
    default:
      return UNKNOWN;
  }
}

export const ask = () => ASK;
export const accepting = (accept: Accept): Known => ({ accept, absent: 'refused', fills: false });
export const UNKNOWN: Known = { ...accepting(ask), fills: true };

export const mayFill = (schema: unknown) => !(schema instanceof KnownSchema) || schema.known.fills;

/** Accepts a value unchanged. */
function only(isValid: (value: unknown) => boolean): Accept {
  return (value) => (isValid(value) ? value : ASK);
}

export const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function toObject(shape: Members, strict: boolean): Accept {
  return (value) => {
    if (!isObject(value)) return ASK;
    if (strict) for (const key in value) if (!Object.hasOwn(shape, key)) return ASK;
    const parsed: Members = {};
    for (const key in shape) {
      const field = shape[key];
      if (!(field instanceof KnownSchema) || key === '__proto__') return ASK;
      const isThere = key in value;
      if (!isThere && field.known.absent === 'left out') continue;
      if (!isThere && field.known.absent !== 'filled') return ASK;
      const own = field.known.accept(value[key]);
      if (own === ASK) return ASK;
      parsed[key] = own;
    }
    return parsed;
  };
}

function toArray(element: unknown): Accept {
  return (value) => {
    if (!Array.isArray(value) || !(element instanceof KnownSchema)) return ASK;
    const parsed: unknown[] = [];
    for (const one of value) {
      const own = element.known.accept(one);
      if (own === ASK) return ASK;
      parsed.push(own);
    }
    return parsed;
  };
}

/** With names of any text: those that JSON has, so none of them is a symbol or hidden. */
function toRecord(name: unknown, element: unknown): Accept {
  return (value) => {
    if (!(name instanceof KnownSchema && element instanceof KnownSchema) || name.known.values !== undefined) return ASK;
    if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return ASK;
    const keys = Object.keys(value);
    if (keys.includes('__proto__') || Reflect.ownKeys(value).length !== keys.length) return ASK;
    const parsed: Members = {};
    for (const key of keys) {
      const own = element.known.accept(value[key]);
      if (own === ASK || name.known.accept(key) !== key) return ASK;
      parsed[key] = own;
    }
    return parsed;
  };
}

function oneOf(tag: string, options: readonly unknown[]): Accept {
  return (value) => {
    if (!isObject(value) || value[tag] === undefined) return ASK;
    const own = options.find((option) => {
      const field = option instanceof KnownSchema ? option.known.shape?.[tag] : undefined;
      return field instanceof KnownSchema && field.known.values?.includes(value[tag]);
    });
    return own instanceof KnownSchema ? own.known.accept(value) : ASK;
  };
}
