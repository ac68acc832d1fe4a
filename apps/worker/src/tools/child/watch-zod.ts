import * as nodeModule from 'node:module';

/** Not in the oldest versions of Node that the worker supports. */
interface Hooks {
  registerHooks?(hooks: {
    resolve(
      specifier: string,
      context: unknown,
      next: (specifier: string, context: unknown) => { url: string },
    ): object;
  }): unknown;
}

/** Returns what finds the URLs of zod that the modules imported since. */
export function watchZod(): () => string[] {
  const urls = new Set<string>();
  (nodeModule as unknown as Hooks).registerHooks?.({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      if (/^zod(\/|$)/.test(specifier)) urls.add(resolved.url);
      return resolved;
    },
  });
  return () => [...urls];
}
