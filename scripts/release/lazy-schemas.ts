import { join } from 'node:path';
import type { Plugin } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { root } from '../steps.ts';

// The libraries define some hundred schemas, and one call of the command line checks values with ten of them. A schema takes zod 20 µs to make,
// so in the bundle each is made at its first use: `const a = z.object(…)` becomes `const a = lazySchema(() => z.object(…))`.

const MAKER = 'virtual:lazy-schema';

/** A stand-in for a schema. It has no state of its own: every access reaches the schema. */
const maker = `export function lazySchema(make) {
  let made;
  const own = () => (made ??= make());
  return new Proxy({}, {
    get: (_none, name) => Reflect.get(own(), name),
    set: (_none, name, value) => Reflect.set(own(), name, value),
    has: (_none, name) => Reflect.has(own(), name),
    ownKeys: () => Reflect.ownKeys(own()),
    getPrototypeOf: () => Reflect.getPrototypeOf(own()),
    getOwnPropertyDescriptor: (_none, name) => {
      const found = Reflect.getOwnPropertyDescriptor(own(), name);
      return found && { ...found, configurable: true };
    },
  });
}`;

export function lazySchemas(): Plugin {
  return {
    name: 'lazy-schemas',
    resolveId: { filter: { id: /^virtual:lazy-schema$/ }, handler: (id) => id },
    load: { filter: { id: /^virtual:lazy-schema$/ }, handler: () => maker },
    transform: {
      filter: { id: /\.js$/, code: /Schema = / },
      handler: (code, id) => (id.startsWith(join(root, 'libs')) ? toLazy(code) : undefined),
    },
  };
}

/** Wraps what the constants of the module that are named as schemas are made with. */
export function toLazy(code: string): string | undefined {
  let text = code;
  // From the end, so that the places before it stay what they are.
  for (const statement of parseAst(code).body.toReversed()) {
    const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declaration?.type !== 'VariableDeclaration') continue;
    const [{ id, init } = {}] = declaration.declarations;
    if (id?.type !== 'Identifier' || !id.name.endsWith('Schema') || init?.type !== 'CallExpression') continue;
    text = `${text.slice(0, init.start)}lazySchema(() => ${text.slice(init.start, init.end)})${text.slice(init.end)}`;
  }
  return text === code ? undefined : `import { lazySchema } from '${MAKER}';\n${text}`;
}
