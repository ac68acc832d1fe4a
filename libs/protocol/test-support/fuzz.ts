import fc from 'fast-check';
import { ERRORS, isShellfleetError, type ShellfleetError } from '../src/errors.ts';

// Fuzzing of parsers of outside input. A failure prints its seed, its path and the smallest value that shows it.
// `{ seed, path }` as the last argument runs it again.

const RUNS = 400;
const TEXT_RUNS = 200;
const LONGEST_MESSAGE_CHARS = 10_000;

export type FuzzOptions = Pick<fc.Parameters<unknown>, 'numRuns' | 'seed' | 'path'>;

/** Calls the check with arbitrary values, and with valid values in which one part was replaced, removed or added. */
export function fuzz(valid: readonly unknown[], check: (value: unknown) => void, options: FuzzOptions = {}): void {
  fc.assert(
    fc.property(fc.oneof({ weight: 1, arbitrary: hostile }, { weight: 3, arbitrary: mutationOf(valid) }), check),
    { numRuns: RUNS, ...options },
  );
}

/** Calls an asynchronous check in the same way. */
export async function fuzzAsync(
  valid: readonly unknown[],
  check: (value: unknown) => Promise<void>,
  options: FuzzOptions = {},
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.oneof({ weight: 1, arbitrary: hostile }, { weight: 3, arbitrary: mutationOf(valid) }), check),
    { numRuns: RUNS, ...options },
  );
}

/** Calls the check with arbitrary texts, valid texts with changes, and JSON of hostile values. */
export function fuzzText(valid: readonly string[], check: (text: string) => void, options: FuzzOptions = {}): void {
  const any = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), fc.constantFrom(...TEXTS));
  const cut = fc
    .tuple(fc.constantFrom(...valid, ''), fc.nat(), fc.nat(10), any)
    .map(([text, at, length, put]) => spliced(text, at % (text.length + 1), length, put));
  const json = fc.oneof(hostile, mutationOf(valid.map(tryToParse))).map(toJson);
  fc.assert(fc.property(fc.oneof(any, cut, json), check), { numRuns: TEXT_RUNS, ...options });
}

/** Calls the check with arbitrary bytes, and with valid bytes after changes. */
export function fuzzBytes(
  valid: readonly Uint8Array[],
  check: (bytes: Uint8Array) => void,
  options: FuzzOptions = {},
): void {
  const any = fc.uint8Array({ maxLength: 300 });
  const changed = fc
    .tuple(fc.constantFrom(...valid, new Uint8Array()), fc.nat(), fc.nat(10), fc.uint8Array({ maxLength: 12 }))
    .map(([bytes, seed, length, put]) => {
      const at = seed % (bytes.byteLength + 1);
      return Uint8Array.from(Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + length)]));
    });
  fc.assert(fc.property(fc.oneof(any, changed), check), { numRuns: RUNS, ...options });
}

/**
 * Returns the error of the call if it is a ShellfleetError
 * whose message names every invalid field. Other errors fail the test.
 */
export function refusalOf(call: () => unknown): ShellfleetError | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return asRefusal(error);
  }
}

export async function refusalOfAsync(call: () => Promise<unknown>): Promise<ShellfleetError | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return asRefusal(error);
  }
}

function asRefusal(error: unknown): ShellfleetError {
  if (!isShellfleetError(error))
    throw new Error(`It threw something else than a ShellfleetError: ${error}`, { cause: error });
  const { code, message, context } = error;
  if (!Object.hasOwn(ERRORS, code)) throw new Error(`The code ${code} is none of ours.`);
  if (code === 'INTERNAL' && context.issues === undefined)
    throw new Error(`An error without a field: ${message}`, { cause: error });
  if (message === '' || message.length > LONGEST_MESSAGE_CHARS)
    throw new Error(`A message of ${message.length} characters.`);
  for (const { path } of (context.issues ?? []) as { path: string }[])
    if (!message.includes(path)) throw new Error(`The message does not name the field ${path}: ${message}`);
  return error;
}

/** Texts that are special to some layer: JSON, Redis keys, shells, terminals, objects. */
const TEXTS = [
  '',
  ' ',
  '\0',
  '\ud800',
  'é',
  '\u001b[31m',
  '__proto__',
  'constructor',
  'toString',
  '$',
  '*',
  '{}',
  '../x',
  '1e999',
  '-0',
];

const DEEP = Array.from({ length: 2_000 }).reduce<unknown>((inner) => ({ inner }), 1);

const hostile: fc.Arbitrary<unknown> = fc.oneof(
  fc.anything({ maxDepth: 3, withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }),
  fc.anything({
    maxDepth: 2,
    withNullPrototype: true,
    withBoxedValues: true,
    withSparseArray: true,
    withObjectString: true,
  }),
  fc.constantFrom<unknown>(
    ...TEXTS,
    ...[Number.NaN, Number.POSITIVE_INFINITY, -0, -1, 0.5, 2 ** 31, 2 ** 53, 1e308],
    JSON.parse('{"__proto__": {"polluted": true}}'),
    DEEP,
    'x'.repeat(20_000),
    Array.from({ length: 2_000 }, () => 5),
    Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`unknown-${index}`, 5])),
    { ['k'.repeat(20_000)]: 1 },
    () => 1,
    Symbol('s'),
    new Date(Number.NaN),
    /x/,
    Promise.resolve(1),
  ),
);

type Place = { holder: Record<string, unknown>; key: string };

function mutationOf(valid: readonly unknown[]): fc.Arbitrary<unknown> {
  const kinds = fc.constantFrom('replace', 'remove', 'add', 'none' as const);
  return fc
    .tuple(fc.constantFrom(...valid), fc.nat(), kinds, fc.string(), hostile)
    .map(([value, seed, kind, name, put]) => {
      const root = { value: copy(value) };
      const places = placesOf(root);
      const { holder, key } = places[seed % places.length] as Place;
      const inner = holder[key];
      if (kind === 'replace') holder[key] = put;
      if (kind === 'remove') delete holder[key];
      if (kind === 'add') add(inner, name, put);
      return root.value;
    });
}

/** Adds an own property of any name, `__proto__` included. */
function add(inner: unknown, name: string, value: unknown): void {
  if (Array.isArray(inner)) inner.push(value);
  else if (typeof inner === 'object' && inner !== null && !ArrayBuffer.isView(inner))
    Object.defineProperty(inner, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns every place in a value that can be changed. */
function placesOf(holder: Record<string, unknown>): Place[] {
  return Object.keys(holder).flatMap((key) => {
    const inner = holder[key];
    const isPlain = typeof inner === 'object' && inner !== null && !ArrayBuffer.isView(inner);
    return [{ holder, key }, ...(isPlain ? placesOf(inner as Record<string, unknown>) : [])];
  });
}

function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copy(inner)]));
}

function spliced(text: string, at: number, length: number, put: string): string {
  return text.slice(0, at) + put + text.slice(at + length);
}

function tryToParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch {
    return String(typeof value);
  }
}
