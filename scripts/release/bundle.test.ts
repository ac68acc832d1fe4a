import { expect, test } from 'vitest';
import { useBuiltins } from './load-builtins.ts';

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
