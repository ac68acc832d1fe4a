const { readFileSync } = process.getBuiltinModule('node:fs');

/** Not in the oldest versions of Node that the worker supports. */
interface Hooks {
  registerHooks?(hooks: {
    resolve(
      specifier: string,
      context: { parentURL?: string },
      next: (specifier: string, context: unknown) => object,
    ): object;
    load(url: string, context: unknown, next: (url: string, context: unknown) => object): object;
  }): { deregister(): void };
}

/** zod's list of its locales: one module for each language, two thirds of all its modules. */
const LOCALES = /\/v4\/locales\/index\.js$/;
const LOCALE = /^export \{ default as (\w+) \} from "(\.\/[\w-]+\.js)";$/;

/**
 * Loads the zod that the tools import, in less than half the time that their own import would take: a relative import needs no search, and a
 * locale is loaded when it is called. The modules of zod are otherwise its own, and the hooks are gone before a tool's module is loaded.
 */
export async function preloadZod(urls: readonly string[]): Promise<void> {
  if (urls.length === 0) return;
  const hooks = (process.getBuiltinModule('node:module') as unknown as Hooks).registerHooks?.({
    resolve(specifier, context, next) {
      if (!specifier.startsWith('./') && !specifier.startsWith('../')) return next(specifier, context);
      return { url: new URL(specifier, context.parentURL).href, shortCircuit: true };
    },
    load(url, context, next) {
      const source = LOCALES.test(url) ? lazyLocales(readFileSync(new URL(url), 'utf8')) : undefined;
      return source === undefined ? next(url, context) : { format: 'module', source, shortCircuit: true };
    },
  });
  // A module that does not load here fails again where the tool imports it.
  await Promise.allSettled(urls.map((url) => import(url)));
  hooks?.deregister();
}

/** The same exports, each of which loads its locale at its first call; undefined when the list has another form. */
export function lazyLocales(list: string): string | undefined {
  if (!(process.features as { require_module?: boolean }).require_module) return undefined;
  const lines = list.trim().split('\n');
  const locales = lines.map((line) => LOCALE.exec(line));
  if (locales.includes(null)) return undefined;
  return [
    `const load = process.getBuiltinModule('node:module').createRequire(import.meta.url);`,
    ...locales.map((locale) => `export const ${locale?.[1]} = () => load('${locale?.[2]}').default();`),
  ].join('\n');
}
