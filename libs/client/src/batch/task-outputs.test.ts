import { describe, expect, test } from 'vitest';
import { outputPlaces, toFileName } from './task-outputs.ts';

describe('places of outputs', () => {
  test('have the id as one name of a file and the number of the repeat', () => {
    const outputs = { '/a': '/out/{id}/{repeat}/a', '/b': '/out/{repeat}/b' };
    expect(outputPlaces(outputs, '../x y', 3)).toEqual([
      { path: '/a', local: '/out/..%2Fx%20y/3/a', isOwn: true },
      { path: '/b', local: '/out/3/b', isOwn: false },
    ]);
  });

  test('are inside the directory, short and different, whatever the ids', () => {
    const ids = ['a', '.', '..', '...', 'a/b', 'a%2Fb', 'a b', '\ud800', 'ä'.repeat(256), `${'ä'.repeat(255)}b`];
    const names = ids.map(toFileName);
    for (const name of names) expect(name).toMatch(/^(?!\.+$)[A-Za-z0-9._%-]{1,200}$/);
    expect(new Set(names).size).toBe(ids.length);
  });
});
