import { join } from 'node:path';
import type { Plugin } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { root } from '../steps.ts';
import { MAKERS } from './quick-zod.ts';

const QUICK = 'virtual:quick-zod';
const ZOD = 'virtual:zod';

/** Gives the libraries and the command line the `z` of quick-zod.ts, which loads zod when it needs it. */
export function quickSchemas(): Plugin {
  return {
    name: 'quick-schemas',
    resolveId: {
      filter: { id: /^(zod|virtual:(quick-)?zod)$/ },
      handler(id, importer = '') {
        if (id !== 'zod') return id;
        if (isOurs(importer)) return QUICK;
        return importer === ZOD
          ? this.resolve(id, join(root, 'libs/protocol/package.json'), { skipSelf: true })
          : undefined;
      },
    },
    load: {
      filter: { id: /^virtual:(quick-)?zod$/ },
      handler: (id) => (id === QUICK ? quick : zod),
    },
    transform: {
      filter: { id: /\.js$/, code: /from 'zod'/ },
      handler: (code, id) => {
        if (!isOurs(id)) return undefined;
        refuseUnknown(code, id);
        return toLazy(code);
      },
    },
  };
}

const isOurs = (path: string) => ['libs/', 'apps/'].some((folder) => path.startsWith(join(root, folder)));

const QUICK_ZOD = JSON.stringify(join(import.meta.dirname, 'quick-zod.ts'));

const quick = `import { createQuickZod } from ${QUICK_ZOD};
export const z = createQuickZod(() => require('${ZOD}'));
`;

/** Without the rest of zod, such as its messages in fifty languages. */
const zod = `export { ${MAKERS.join(', ')} } from 'zod';
`;

function refuseUnknown(code: string, id: string): void {
  for (const [, name = ''] of code.matchAll(/\bz\.(\w+)/g))
    if (!MAKERS.includes(name)) throw new Error(`${id} uses z.${name}, which quick-zod.ts does not have.`);
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
  return text === code ? undefined : `import { lazySchema } from ${QUICK_ZOD};\n${text}`;
}
