import { describe, expect, test } from 'vitest';
import { repositoryFiles } from './repository-files.ts';

// A search for a name finds two meanings if two files export it.

const declaration = /^export (?:abstract |async )?(?:interface|type|class|function\*?|const|enum) (?<name>\w+)/gm;

const sources = await repositoryFiles(
  (path) => /^(?:apps|libs|infra)\/.*\/src\/.*(?<!\.(?:test|bench))\.ts$/.test(path) && !path.includes('/fixtures/'),
);

describe('exported names', () => {
  test('are each exported by one file', () => {
    const files = new Map<string, Set<string>>();
    for (const { path, text } of sources)
      for (const { groups } of text.matchAll(declaration)) {
        const name = groups?.name ?? '';
        files.set(name, (files.get(name) ?? new Set()).add(path));
      }
    expect(files.size).toBeGreaterThan(1_000);
    expect([...files].filter(([, paths]) => paths.size > 1).map(([name, paths]) => [name, ...paths])).toEqual([]);
  });
});

describe('Lua scripts', () => {
  test('have different paths in their libraries, since the bundle has one directory for all', async () => {
    const scripts = await repositoryFiles((path) => /^libs\/.*\/src\/.*\.lua$/.test(path));
    const places = scripts.map(({ path }) => path.split('/').slice(3).join('/'));
    expect(places.length).toBeGreaterThan(40);
    expect(places.filter((place, index) => places.indexOf(place) !== index)).toEqual([]);
  });
});
