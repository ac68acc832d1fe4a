import type { Plugin } from 'rolldown';

// Modules of Node are a large part of what a short call loads, so the bundle loads few of them.
//
// BUILTINS-1. The bundle has no `import` of them, which would read every export: some of `fs`, `crypto` and `util` load
//             more modules. `process.getBuiltinModule` reads nothing.
// BUILTINS-2. A module of which only functions are used is loaded at their first call.
// BUILTINS-3. The global `performance` loads `perf_hooks`. `process.uptime` reads the same clock.

/** Modules whose exports the bundle uses only by calling them. */
const onCall = ['fs/promises', 'timers/promises', 'readline', 'stream/consumers', 'stream/promises', 'zlib'];
/** Modules that packages from npm load and seldom call, with the functions that they call. */
const requiredOnCall: Record<string, readonly string[]> = {
  tls: ['connect'],
  child_process: ['spawn'],
  assert: ['strictEqual'],
};

export function loadBuiltins(): Plugin {
  return {
    name: 'load-builtins',
    transform: { filter: { id: /node_modules/, code: /require\(/ }, handler: requireOnCall },
    renderChunk: useBuiltins,
  };
}

/** Replaces the imports in a module of the bundle, which rolldown writes one a line. */
export function useBuiltins(code: string): string {
  return (
    code
      .replace(/^import (?:(\w+)(?:, | ))?(?:\{ ([^}]*) \} )?from "node:([\w/]+)";$/gm, (_all, whole, names, module) =>
        [
          ...(whole === undefined ? [] : [`const ${whole} = ${load(module)};`]),
          ...toConstants(names ?? '', module),
        ].join('\n'),
      )
      .replaceAll('performance.now()', '(process.uptime() * 1e3)')
      // The bundle requires only modules of Node.
      .replace('(() => createRequire(import.meta.url))()', 'process.getBuiltinModule')
  );
}

const load = (module: string) => `process.getBuiltinModule("node:${module}")`;

function toConstants(names: string, module: string): string[] {
  const pairs = names
    .split(', ')
    .filter(Boolean)
    .map((name) => name.split(' as '));
  if (pairs.length === 0) return [];
  if (!onCall.includes(module)) {
    return [`const { ${pairs.map(([name, own = name]) => `${name}: ${own}`).join(', ')} } = ${load(module)};`];
  }
  return pairs.map(([name, own = name]) => `const ${own} = (...args) => ${load(module)}.${name}(...args);`);
}

function requireOnCall(code: string): string {
  return code.replace(
    /^(?:const|var) (\w+) = require\(['"](?:node:)?(\w+)['"]\);?$/gm,
    (all, name: string, module: string) => {
      const members = requiredOnCall[module];
      if (members === undefined) return all;
      const own = members.map((member) => `${member}: (...args) => require('${module}').${member}(...args)`);
      return `const ${name} = Object.assign((...args) => require('${module}')(...args), { ${own.join(', ')} });`;
    },
  );
}
