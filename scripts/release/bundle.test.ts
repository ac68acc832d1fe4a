import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { lazySchema } from './lazy-schema.ts';
import { toLazy } from './lazy-schemas.ts';
import { useBuiltins } from './load-builtins.ts';

test('a schema of the bundle is made at its first use, and nothing else changes', () => {
  const lazy = toLazy(`import { z } from 'zod';
const nameSchema = z.string().min(1);
export const personSchema = z.strictObject({ name: nameSchema, age: z.int().optional() });
export const limit = z.int();
`);
  expect(lazy).toBe(`import { lazySchema } from ${JSON.stringify(join(import.meta.dirname, 'lazy-schema.ts'))};
import { z } from 'zod';
const nameSchema = lazySchema(() => z.string().min(1));
export const personSchema = lazySchema(() => z.strictObject({ name: nameSchema, age: z.int().optional() }));
export const limit = z.int();
`);
  expect(toLazy('export const limit = 3;\n')).toBeUndefined();
});

test('a lazy schema is made once, and serves alone and within another schema', () => {
  const make = vi.fn(() => z.string().min(1, 'must not be empty'));
  const nameSchema = lazySchema(make);
  const personSchema = lazySchema(() => z.strictObject({ name: nameSchema, nick: nameSchema.optional() }));
  expect(make).not.toHaveBeenCalled();
  expect(personSchema.parse({ name: 'a' })).toEqual({ name: 'a' });
  expect(nameSchema.safeParse('').error?.issues).toMatchObject([{ message: 'must not be empty' }]);
  expect(personSchema.safeParse({ name: 'a', nick: '' }).error?.issues).toMatchObject([{ path: ['nick'] }]);
  expect(nameSchema instanceof z.ZodString).toBe(true);
  expect(make).toHaveBeenCalledTimes(1);
});

test('the bundle asks for modules of Node where it imported or required them', () => {
  expect(
    useBuiltins(
      [
        'import { readFile, rm as remove } from "node:fs/promises";',
        'import crypto, { sign } from "node:crypto";',
        'import module from "node:module";',
        'import { z } from "zod";',
      ].join('\n'),
    ).split('\n'),
  ).toEqual([
    'const readFile = (...args) => process.getBuiltinModule("node:fs/promises").readFile(...args);',
    'const remove = (...args) => process.getBuiltinModule("node:fs/promises").rm(...args);',
    'const crypto = process.getBuiltinModule("node:crypto");',
    'const { sign: sign } = process.getBuiltinModule("node:crypto");',
    'const module = process.getBuiltinModule("node:module");',
    'import { z } from "zod";',
  ]);
});
