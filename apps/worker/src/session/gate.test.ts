import { expect, test } from 'vitest';
import { createGate } from './gate.ts';

test('lets so many in at a time, the others in their order, whether or not the work before them failed', async () => {
  const gate = createGate(2);
  const said: string[] = [];
  const ends = new Map<string, (failed: boolean) => void>();
  const enter = (name: string) =>
    gate(() => {
      said.push(name);
      return new Promise<void>((resolve, reject) => {
        ends.set(name, (failed) => (failed ? reject(new Error(name)) : resolve()));
      });
    }).catch((error: Error) => said.push(`${error.message} failed`));
  const all = ['a', 'b', 'c', 'd'].map(enter);
  expect(said).toEqual(['a', 'b']);
  ends.get('b')?.(true);
  await all[1];
  expect(said).toEqual(['a', 'b', 'b failed', 'c'].sort((x, y) => said.indexOf(x) - said.indexOf(y)));
  for (const name of ['a', 'c']) ends.get(name)?.(false);
  await Promise.all([all[0], all[2]]);
  expect(said).toContain('d');
  ends.get('d')?.(false);
  await Promise.all(all);
});
