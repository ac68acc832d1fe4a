import fc, { type Arbitrary } from 'fast-check';

/** Schema of JSON, as far as values are generated from it. */
export interface JsonSchema {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema;
  minItems?: number;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
}

/** Fields whose texts a shell may execute. */
const SCRIPTS = new Set(['script', 'startupCommands', 'shutdownCommands', 'setup', 'grade']);
const MOST_LEVELS = 5;
const MOST_OPTIONS = 3;
const LONGEST = 5_000;
const MOST = Number.MAX_SAFE_INTEGER;

/** Generates values from the schemas of an OpenAPI document. No script among them does anything. */
export class JsonValues {
  readonly #components: Readonly<Record<string, JsonSchema>>;

  constructor(components: Readonly<Record<string, JsonSchema>>) {
    this.#components = components;
  }

  /** Returns values that a schema accepts, its bounds among them. */
  valid(schema: JsonSchema, field = '', level = 0): Arbitrary<unknown> {
    if (schema.$ref !== undefined) return this.valid(this.#resolve(schema.$ref), field, level);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    const forms = schema.oneOf ?? schema.anyOf;
    if (forms !== undefined) return fc.oneof(...forms.map((form) => this.valid(form, field, level)));
    switch (schema.type) {
      case 'object':
        return this.#objects(schema, level);
      case 'array':
        return fc.array(level > MOST_LEVELS ? fc.constant('') : this.valid(schema.items ?? {}, field, level + 1), {
          ...{ minLength: schema.minItems ?? 0, maxLength: Math.max(schema.minItems ?? 0, 3) },
        });
      case 'string':
        return SCRIPTS.has(field) ? comments : strings(schema);
      case 'integer':
      case 'number':
        return numbers(schema);
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      default:
        return SCRIPTS.has(field) ? comments : anyJson;
    }
  }

  /** Returns values that are like valid ones, but for one change somewhere, and values of any other form. */
  broken(schema: JsonSchema): Arbitrary<unknown> {
    const changed = fc
      .tuple(this.valid(schema), fc.nat(), fc.oneof(odd, fc.constant(ABSENT)))
      .map(([value, place, change]) => changeAt(value, place, change));
    const extended = this.valid(schema).chain((value) =>
      fc.constantFrom('unknown', '__proto__', 'constructor').map((name) => withField(value, name)),
    );
    return fc.oneof(
      { weight: 4, arbitrary: changed },
      { weight: 1, arbitrary: extended },
      { weight: 1, arbitrary: odd },
    );
  }

  #objects({ properties = {}, required = [], additionalProperties }: JsonSchema, level: number): Arbitrary<unknown> {
    const optional = Object.keys(properties).filter((name) => !required.includes(name));
    // With many options at once, two of them nearly always exclude each other.
    const some = fc.subarray(optional, {
      maxLength: level > MOST_LEVELS ? 0 : Math.min(MOST_OPTIONS, optional.length),
    });
    const known = some.chain((names) =>
      fc.record(
        Object.fromEntries(
          [...required, ...names].map((name) => [name, this.valid(properties[name] ?? {}, name, level + 1)]),
        ),
      ),
    );
    if (typeof additionalProperties !== 'object' || level > MOST_LEVELS) return known;
    const key = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/);
    const others = fc.dictionary(key, this.valid(additionalProperties, '', level + 1), { maxKeys: 3 });
    return fc.tuple(others, known).map(([more, own]) => ({ ...more, ...own }));
  }

  #resolve(reference: string): JsonSchema {
    return this.#components[reference.slice(reference.lastIndexOf('/') + 1)] ?? {};
  }
}

/** Scripts that are a comment, whatever their text. */
const comments = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => `# ${text.replaceAll(/[\r\n]/g, ' ')}`);

/** Any JSON, with texts that are no scripts. */
const anyJson = fc.jsonValue({ maxDepth: 3, stringUnit: fc.constantFrom('a', 'Z', '0', 'é', '\u{1f600}') });

/** Values that hardly any field accepts. */
export const odd: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, '', ' ', '\0', '\ud800', -1, 0, 1.5, MOST, -MOST, 1e308, true, [], {}, [[]], '../..'),
  fc.constant('x'.repeat(LONGEST)),
  anyJson,
);

function strings({ minLength = 0, maxLength = 40, pattern, format }: JsonSchema): Arbitrary<string> {
  if (format === 'date-time') return fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  if (format === 'base64') return fc.base64String({ maxLength: 40 });
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern));
  const lengths = fc.string({ unit: 'grapheme', minLength, maxLength: Math.max(minLength, Math.min(maxLength, 40)) });
  return maxLength > LONGEST
    ? lengths
    : fc.oneof({ weight: 4, arbitrary: lengths }, fc.constant('y'.repeat(maxLength)));
}

function numbers({ type, minimum = -MOST, maximum = MOST }: JsonSchema): Arbitrary<number> {
  const bounds = fc.constantFrom(minimum, maximum);
  const within =
    type === 'integer'
      ? fc.integer({ min: Math.max(minimum, -MOST), max: Math.min(maximum, MOST) })
      : fc.double({ min: minimum, max: maximum, noNaN: true });
  return fc.oneof({ weight: 2, arbitrary: bounds }, { weight: 3, arbitrary: within });
}

const ABSENT = Symbol('absent');

/** Returns a copy with one of its parts replaced or removed: the part with the number `place`, counted in order. */
function changeAt(value: unknown, place: number, change: unknown): unknown {
  const paths = pathsIn(value);
  const path = paths[place % paths.length] ?? [];
  const last = path.at(-1);
  if (last === undefined) return change === ABSENT ? undefined : change;
  const copy = structuredClone(value);
  const holder = path.slice(0, -1).reduce((part, key) => part[key] as Parts, copy as Parts);
  if (change === ABSENT) delete holder[last];
  else holder[last] = change;
  return copy;
}

type Parts = Record<string, unknown>;

function pathsIn(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [[...path]];
  return [[...path], ...Object.entries(value).flatMap(([key, part]) => pathsIn(part, [...path, key]))];
}

function withField(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [value];
  return Object.defineProperty({ ...value }, name, { value: 1, enumerable: true });
}
