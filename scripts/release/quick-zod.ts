import {
  ASK,
  accepting,
  ask,
  isObject,
  type Known,
  KnownSchema,
  knownOf,
  type Members,
  mayFill,
  toObject,
  UNKNOWN,
} from './accept-values.ts';

// What the bundle imports as `z`. Making a schema with zod and using it once takes longer than most of a short call: zod is written for schemas
// that are used often.
//
// QUICK-1. A schema here accepts a value only if zod accepts it, with the same result. Where it is not sure, zod is asked.
// QUICK-2. Every issue, and whatever else is read of a schema, comes from the schema that zod makes of the same calls, at its first use.
// QUICK-3. zod is loaded when it is first asked.

/** The functions of `z` that the libraries use. */
export const MAKERS = [
  ...[
    'string',
    'ulid',
    'number',
    'int',
    'boolean',
    'null',
    'unknown',
    'literal',
    'enum',
    'custom',
    'instanceof',
    'json',
  ],
  ...['object', 'strictObject', 'array', 'record', 'discriminatedUnion', 'union', 'preprocess'],
];

/** Returns what takes the place of `z`. `loadZod` returns zod. */
export function createQuickZod(loadZod: () => unknown): Record<string, (...args: unknown[]) => unknown> {
  const make =
    (name: string) =>
    (...args: unknown[]) =>
      new QuickSchema(() => call(loadZod() as Members, name, args), knownOf(name, args));
  return Object.fromEntries(MAKERS.map((name) => [name, make(name)]));
}

/** A schema that is made at its first use: the libraries define some hundred, and a call needs ten of them. */
export function lazySchema(make: () => unknown): unknown {
  let schema: unknown;
  const own = () => {
    schema ??= make();
    return schema;
  };
  return new QuickSchema(
    () => toReal(own()),
    () => {
      const made = own();
      return made instanceof QuickSchema ? made.known : UNKNOWN;
    },
  );
}

class QuickSchema extends KnownSchema {
  readonly #make: () => unknown;
  #made?: Members;
  #known: Known | (() => Known);

  constructor(make: () => unknown, known: Known | (() => Known)) {
    super();
    this.#make = make;
    this.#known = known;
  }

  get known(): Known {
    if (typeof this.#known === 'function') this.#known = this.#known();
    return this.#known;
  }

  /** The schema of zod. */
  get real(): Members {
    this.#made ??= this.#make() as Members;
    return this.#made;
  }

  get shape(): unknown {
    return this.known.shape ?? this.real.shape;
  }

  /** Of a literal. */
  get value(): unknown {
    return this.known.values?.[0] ?? this.real.value;
  }

  safeParse(value: unknown, ...rest: unknown[]): unknown {
    const data = rest.length === 0 ? this.known.accept(value) : ASK;
    return data === ASK ? this.#askZod('safeParse', value, ...rest) : { success: true, data };
  }

  parse(value: unknown, ...rest: unknown[]): unknown {
    const data = rest.length === 0 ? this.known.accept(value) : ASK;
    return data === ASK ? this.#askZod('parse', value, ...rest) : data;
  }

  optional(): QuickSchema {
    const { accept, fills } = this.known;
    return this.#then('optional', [], {
      accept: fills ? ask : (value) => (value === undefined ? undefined : accept(value)),
      absent: fills ? 'refused' : 'left out',
      fills,
    });
  }

  nullable(): QuickSchema {
    const { accept, absent, fills } = this.known;
    return this.#then('nullable', [], {
      accept: (value) => (value === null ? null : accept(value)),
      ...{ absent, fills },
    });
  }

  default(given: unknown): QuickSchema {
    const { accept, absent } = this.known;
    const copy = copierOf(given);
    const isClear = copy !== undefined && absent === 'refused';
    return this.#then('default', [given], {
      accept: isClear ? (value) => (value === undefined ? copy() : accept(value)) : ask,
      absent: isClear ? 'filled' : 'refused',
      fills: true,
    });
  }

  brand(): QuickSchema {
    return this.#then('brand', [], this.known);
  }

  min(least: number, ...rest: unknown[]): QuickSchema {
    // zod counts the code points of a text here.
    const isCounted = (value: unknown) => least <= 1 || typeof value !== 'string';
    return this.#check('min', [least, ...rest], (value) => isCounted(value) && this.#sizeOf(value) >= least);
  }

  max(most: number, ...rest: unknown[]): QuickSchema {
    return this.#check('max', [most, ...rest], (value) => this.#sizeOf(value) <= most);
  }

  int(...rest: unknown[]): QuickSchema {
    return this.#check('int', rest, Number.isSafeInteger);
  }

  positive(...rest: unknown[]): QuickSchema {
    return this.#check('positive', rest, (value) => (value as number) > 0);
  }

  nonnegative(...rest: unknown[]): QuickSchema {
    return this.#check('nonnegative', rest, (value) => (value as number) >= 0);
  }

  regex(pattern: RegExp, ...rest: unknown[]): QuickSchema {
    const isStateless = !pattern.global && !pattern.sticky;
    return this.#check('regex', [pattern, ...rest], (value) => isStateless && pattern.test(value as string));
  }

  refine(isValid: (value: unknown) => unknown, ...rest: unknown[]): QuickSchema {
    return this.#check('refine', [isValid, ...rest], (value) => isValid(value) === true);
  }

  superRefine(find: (value: unknown, context: unknown) => unknown, ...rest: unknown[]): QuickSchema {
    return this.#check('superRefine', [find, ...rest], (value) => {
      let found = 0;
      const result = find(value, { value, issues: [], addIssue: () => found++ });
      return found === 0 && result === undefined;
    });
  }

  check(find: (payload: { value: unknown; issues: unknown[] }) => unknown, ...rest: unknown[]): QuickSchema {
    return this.#check('check', [find, ...rest], (value) => {
      const payload = { value, issues: [] };
      find(payload);
      return payload.issues.length === 0 && payload.value === value;
    });
  }

  overwrite(change: (value: unknown) => unknown): QuickSchema {
    const { accept } = this.known;
    return this.#then('overwrite', [change], {
      ...this.known,
      accept: (value) => {
        const parsed = accept(value);
        return parsed === ASK ? ASK : change(parsed);
      },
    });
  }

  extend(more: Members): QuickSchema {
    const { shape, isStrict = false } = this.known;
    const all = { ...shape, ...more };
    const known = { ...accepting(toObject(all, isStrict)), shape: all, isStrict };
    return this.#then('extend', [more], shape === undefined ? UNKNOWN : known);
  }

  pipe(next: unknown): QuickSchema {
    return this.#then('pipe', [next], { ...accepting(ask), fills: this.known.fills });
  }

  or(other: unknown): QuickSchema {
    return this.#then('or', [other], { ...accepting(ask), fills: this.known.fills || mayFill(other) });
  }

  transform(change: unknown): QuickSchema {
    return this.#then('transform', [change], UNKNOWN);
  }

  #askZod(name: 'safeParse' | 'parse', ...args: unknown[]): unknown {
    return Reflect.apply(this.real[name] as () => unknown, this.real, args);
  }

  #sizeOf(value: unknown): number {
    if (this.known.sized === 'value') return value as number;
    return this.known.sized === 'length' ? (value as string).length : Number.NaN;
  }

  /** The same with one more condition. */
  #check(name: string, args: readonly unknown[], isValid: (value: unknown) => boolean): QuickSchema {
    const { accept } = this.known;
    const checked = (value: unknown) => {
      const parsed = accept(value);
      return parsed !== ASK && isValid(parsed) ? parsed : ASK;
    };
    const isConditional = args.some((arg) => isObject(arg) && 'when' in arg);
    return this.#then(name, args, { ...this.known, accept: isConditional ? ask : checked });
  }

  #then(name: string, args: readonly unknown[], known: Known): QuickSchema {
    return new QuickSchema(() => call(this.real, name, args), known);
  }
}

/** Whatever else a schema has is read of that of zod: it is what the prototype's prototype answers with. */
Object.setPrototypeOf(
  KnownSchema.prototype,
  new Proxy(Object.create(null), {
    get: (_none, name, schema: QuickSchema) => {
      const value = Reflect.get(schema.real, name);
      return typeof value === 'function' ? (...args: unknown[]) => call(schema.real, name, args) : value;
    },
  }),
);

/** A default is the same for all values, or a copy of it for each. */
function copierOf(given: unknown): (() => unknown) | undefined {
  if (['string', 'number', 'boolean'].includes(typeof given)) return () => given;
  if (Array.isArray(given)) return () => [...given];
  const isPlain = isObject(given) && Object.getPrototypeOf(given) === Object.prototype;
  return isPlain ? () => ({ ...given }) : undefined;
}

function call(own: Members, name: PropertyKey, args: readonly unknown[]): unknown {
  return Reflect.apply(own[name as string] as () => unknown, own, args.map(toReal));
}

/** Schemas in what a schema is made of. */
function toReal(given: unknown): unknown {
  if (given instanceof QuickSchema) return given.real;
  if (Array.isArray(given)) return given.map(toReal);
  const isShape = isObject(given) && Object.values(given).some((value) => value instanceof QuickSchema);
  return isShape ? Object.fromEntries(Object.entries(given).map(([name, value]) => [name, toReal(value)])) : given;
}
