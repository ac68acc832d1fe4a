import { glob, readFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';

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

/** Groups files by folder. A file at the top counts as a folder. */
function byFolder(files: Graph): Graph {
  const folders: Graph = new Map();
  const folderOf = (path: string) => (dirname(path) === '.' ? path : dirname(path));
  for (const [path, imported] of files) {
    const own = folderOf(path);
    const others = [...imported].map(folderOf).filter((folder) => folder !== own);
    folders.set(own, new Set([...(folders.get(own) ?? []), ...others]));
  }
  return folders;
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

test('imports have no circles, between files or between folders', async () => {
  const files = await readImports();
  expect(files.size).toBeGreaterThan(40);
  expect(circlesOf(files)).toEqual([]);
  expect(circlesOf(byFolder(files))).toEqual([]);
});

test('a circle is found', () => {
  const files: Graph = new Map([
    ['a/x.ts', new Set(['b/y.ts'])],
    ['b/y.ts', new Set()],
    ['b/z.ts', new Set(['a/w.ts'])],
    ['a/w.ts', new Set()],
  ]);
  expect(circlesOf(files)).toEqual([]);
  expect(circlesOf(byFolder(files))).toEqual(['a', 'b']);
});
