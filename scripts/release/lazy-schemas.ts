import { join } from 'node:path';
import type { Plugin } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { Visitor } from 'rolldown/utils';
import { root } from '../steps.ts';

const LAZY_SCHEMA = JSON.stringify(join(import.meta.dirname, 'lazy-schema.ts'));

/**
 * Makes each schema of libraries and command line on first use (docs/adr/0033-zod-is-the-only-validator.md), and
 * without its texts, which no verb of the bundle reads (docs/adr/0049-texts-of-options-are-in-their-schemas.md).
 */
export function lazySchemas(): Plugin {
  return {
    name: 'lazy-schemas',
    transform: {
      filter: { id: /\.js$/, code: /from 'zod'|Schema\b/ },
      handler(code, id) {
        if (!isOurs(id)) return undefined;
        const bare = withoutTexts(code);
        return toLazy(bare) ?? bare;
      },
    },
  };
}

const isOurs = (path: string) => ['libs/', 'apps/'].some((directory) => path.startsWith(join(root, directory)));

/** Wraps each constant that is a schema or an object of schemas. Returns undefined when the module has none. */
export function toLazy(code: string): string | undefined {
  let text = code;
  // Begins at the end, so that the positions of earlier statements stay valid.
  for (const statement of parseAst(code).body.toReversed()) {
    const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declaration?.type !== 'VariableDeclaration') continue;
    const [{ id, init } = {}] = declaration.declarations;
    if (!init || id?.type !== 'Identifier') continue;
    if (!(id.name.endsWith('Schema') && init.type === 'CallExpression') && !makesSchemas(init)) continue;
    text = `${text.slice(0, init.start)}lazySchema(() => (${text.slice(init.start, init.end)}))${text.slice(init.end)}`;
  }
  return text === code ? undefined : `import { lazySchema } from ${LAZY_SCHEMA};\n${text}`;
}

/** Removes the calls of `meta` with the texts of a schema. */
export function withoutTexts(code: string): string {
  if (!code.includes('.meta({')) return code;
  const calls: { start: number; end: number }[] = [];
  new Visitor({
    CallExpression({ callee, arguments: [text], end }) {
      if (callee.type !== 'MemberExpression' || text?.type !== 'ObjectExpression') return;
      const { object, property } = callee;
      if (property.type === 'Identifier' && property.name === 'meta') calls.push({ start: object.end, end });
    },
  }).visit(parseAst(code));
  // Begins at the end, so that the positions of earlier calls stay valid.
  return calls
    .toSorted((one, other) => other.start - one.start)
    .reduce((text, { start, end }) => text.slice(0, start) + text.slice(end), code);
}

/** Tells whether an expression is calls that begin with `z`, as `z.string().min(1)`, or an object that has such. */
function makesSchemas(made: Expression): boolean {
  if (made.type === 'ObjectExpression') {
    return made.properties.some((one) => one.type === 'Property' && makesSchemas(one.value));
  }
  let first: Expression | Super = made;
  while (first.type === 'CallExpression' || first.type === 'MemberExpression') {
    first = first.type === 'CallExpression' ? first.callee : first.object;
  }
  return made.type === 'CallExpression' && first.type === 'Identifier' && first.name === 'z';
}

type Declaration = Extract<ReturnType<typeof parseAst>['body'][number], { type: 'VariableDeclaration' }>;
type Expression = NonNullable<Declaration['declarations'][number]['init']>;
type Super = Extract<Expression, { type: 'CallExpression' }>['callee'];
