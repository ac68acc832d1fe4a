import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ERRORS, ensureShellfleetError, isShellfleetError, parseOrThrow, ShellfleetError } from './errors.ts';

describe('errors', () => {
  test('docs/errors.md lists every code with its hint, and no other code', () => {
    const document = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
    const rows = [...document.matchAll(/^\| `([A-Z_]+)` \| (yes|no) \| (.+) \|$/gm)];
    const listed = rows.map(([, code, retryable, hint]) => [code, { retryable: retryable === 'yes', hint }]);
    expect(Object.fromEntries(listed)).toEqual(ERRORS);
  });

  test('an error travels as code, message, retryable and context, never with its stack', () => {
    const error = new ShellfleetError('FILE_NOT_FOUND', '/x does not exist.', { path: '/x' });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: 'FILE_NOT_FOUND',
      message: '/x does not exist.',
      retryable: false,
      context: { path: '/x' },
    });
  });

  test('a foreign error becomes INTERNAL and keeps its cause', () => {
    const cause = new TypeError('boom');
    const error = ensureShellfleetError(cause);
    expect([isShellfleetError(error), error.code, error.cause]).toEqual([true, 'INTERNAL', cause]);
  });

  test('the first of several errors is the one that is told, whoever made the others', () => {
    const first = new ShellfleetError('FILE_DENIED', 'The disk is full.');
    const close = new Error('also full');
    // Node 22 has no class SuppressedError, and what is compiled for it makes such an error.
    const compiled = Object.assign(new Error('one'), { name: 'SuppressedError', error: close, suppressed: first });
    const outer = Object.assign(new Error('two'), { name: 'SuppressedError', error: close, suppressed: compiled });
    expect([first, compiled, outer].map(ensureShellfleetError)).toEqual([first, first, first]);
  });

  test('a refusal names every wrong field, and unknown fields by their path', () => {
    const schema = z.strictObject({ size: z.number('must be a number'), deep: z.strictObject({}) });
    const parse = () => parseOrThrow(schema, { size: 'x', deep: { typo: 1 } }, 'COMMAND_INVALID', 'The command');
    expect(parse).toThrow('The command is not valid: size: must be a number; deep.typo: unknown field');
  });
});
