import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { entryIdSchema } from '../../libs/protocol/src/ids.ts';
import { toolErrorSchema } from '../../libs/protocol/src/tool.ts';
import { checkShortCall } from './check-short-call.ts';
import { lazySchema } from './lazy-schema.ts';
import { toLazy, withoutTexts } from './lazy-schemas.ts';
import { useBuiltins } from './load-builtins.ts';

describe('the bundle', () => {
  test('makes a schema at its first use, and changes nothing else', () => {
    const lazy = toLazy(`import { entryIdSchema } from '../../libs/protocol/src/ids.ts';
import { toolErrorSchema } from '../../libs/protocol/src/tool.ts';
const nameSchema = z.string().min(1);
export const personSchema = z.strictObject({ name: nameSchema, age: z.int().optional() });
const fields = { id: z.string(), nameSchema };
export const limit = z.int();
export const limits = { bytes: 3 };
`);
    expect(lazy).toBe(`import { lazySchema } from ${JSON.stringify(join(import.meta.dirname, 'lazy-schema.ts'))};
import { entryIdSchema } from '../../libs/protocol/src/ids.ts';
import { toolErrorSchema } from '../../libs/protocol/src/tool.ts';
const nameSchema = lazySchema(() => (z.string().min(1)));
export const personSchema = lazySchema(() => (z.strictObject({ name: nameSchema, age: z.int().optional() })));
const fields = lazySchema(() => ({ id: z.string(), nameSchema }));
export const limit = lazySchema(() => (z.int()));
export const limits = { bytes: 3 };
`);
    expect(toLazy('export const limit = 3;\n')).toBeUndefined();
  });

  test('leaves out the texts of schemas, and nothing else', () => {
    const bare = withoutTexts(`export const nameSchema = z.string().meta({ description: 'Name.' }).optional();
const personSchema = z.strictObject({ name: nameSchema.meta({ description: 'N.', limit: '1' }) }).meta({ id: 'P' });
const { id } = personSchema.meta() ?? {};
`);
    expect(bare).toBe(`export const nameSchema = z.string().optional();
const personSchema = z.strictObject({ name: nameSchema });
const { id } = personSchema.meta() ?? {};
`);
  });

  test('makes a lazy schema once, for itself and within another schema', () => {
    const make = vi.fn(() => entryIdSchema);
    const idSchema = lazySchema(make);
    const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
    const error = { code: 'error', message: 'm' };
    expect(make).not.toHaveBeenCalled();
    const callSchema = lazySchema(() => toolErrorSchema.extend({ id: idSchema, parent: idSchema.optional() }));
    expect(callSchema.parse({ ...error, id })).toEqual({ ...error, id });
    expect(idSchema.safeParse('1').error?.issues).toMatchObject([{ message: 'must be a ULID' }]);
    expect(callSchema.safeParse({ ...error, id, parent: '1' }).error?.issues).toMatchObject([{ path: ['parent'] }]);
    expect(make).toHaveBeenCalledTimes(1);
  });

  test('spreads a lazy object of schemas as the object itself', () => {
    const fields = lazySchema(() => ({ id: entryIdSchema }));
    expect({ ...fields }).toEqual({ id: entryIdSchema });
  });

  test('refuses a file of another verb, or too much code, in what exec loads', () => {
    const file = (fileName: string, size: number, imports: string[], module: string | null = null) => ({
      ...{ fileName, code: 'x'.repeat(size), imports, facadeModuleId: module },
    });
    const files = (ofExec: string[], size = 800_000) => [
      file('main.js', 1_000, ['runtime.js'], '/apps/producer/dist/main.js'),
      file('runtime.js', 1_000, []),
      file('start.js', 40, ['common.js'], '/apps/producer/dist/start.js'),
      file('exec.js', 40, ['common.js', ...ofExec], '/apps/producer/dist/cli/exec.js'),
      file('common.js', size, ['runtime.js']),
      file('mcp.js', 500_000, ['common.js'], '/apps/producer/dist/cli/mcp.js'),
    ];
    checkShortCall(files([]));
    expect(() => checkShortCall(files(['mcp.js']))).toThrow('exec loads mcp.js besides common.js: main.js 1000');
    expect(() => checkShortCall(files([], 900_000))).toThrow('exec loads 902080 bytes, more than 900000');
    expect(() => checkShortCall(files([]).slice(1))).toThrow('The bundle has no file for producer/dist/main.js.');
  });

  test('loads modules of Node where it imported or required them', () => {
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
});
