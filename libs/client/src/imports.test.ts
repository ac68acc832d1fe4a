import { glob, readFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';

type Graph = Map<string, Set<string>>;

/** Returns the imports between the source files of this package, types included. */
async function readImports(): Promise<Graph> {
  const files: Graph = new Map();
  for await (const path of glob('**/*.ts', { cwd: import.meta.dirname })) {
    if (path.endsWith('.test.ts')) continue;
    const text = await readFile(join(import.meta.dirname, path), 'utf8');
    const imported = [...text.matchAll(/(?:from|import) '(\.[^']+)'/g)].map(([, name = '']) => name);
    files.set(path, new Set(imported.map((name) => normalize(join(dirname(path), name)))));
  }
  return files;
}

/** Groups the files by directory. A file outside of any directory counts as a directory of its own. */
function byDirectory(files: Graph): Graph {
  const directories: Graph = new Map();
  const directoryOf = (path: string) => (dirname(path) === '.' ? path : dirname(path));
  for (const [path, imported] of files) {
    const own = directoryOf(path);
    const others = [...imported].map(directoryOf).filter((directory) => directory !== own);
    directories.set(own, new Set([...(directories.get(own) ?? []), ...others]));
  }
  return directories;
}

/** Returns the import cycles, by repeatedly removing every node that imports none of the remaining ones. */
function circlesOf(graph: Graph): string[] {
  const left: Graph = new Map([...graph].map(([name, imported]) => [name, new Set(imported)]));
  for (let removed = true; removed; ) {
    const free = [...left].filter(([, imported]) => ![...imported].some((name) => left.has(name)));
    for (const [name] of free) left.delete(name);
    removed = free.length > 0;
  }
  return [...left.keys()].sort();
}

describe('check of import cycles', () => {
  test('finds no cycle in the files or directories of the client', async () => {
    const files = await readImports();
    expect(files.size).toBeGreaterThan(40);
    expect(circlesOf(files)).toEqual([]);
    expect(circlesOf(byDirectory(files))).toEqual([]);
  });

  test('finds a cycle of directories whose files form no cycle', () => {
    const files: Graph = new Map([
      ['a/x.ts', new Set(['b/y.ts'])],
      ['b/y.ts', new Set()],
      ['b/z.ts', new Set(['a/w.ts'])],
      ['a/w.ts', new Set()],
    ]);
    expect(circlesOf(files)).toEqual([]);
    expect(circlesOf(byDirectory(files))).toEqual(['a', 'b']);
  });
});
