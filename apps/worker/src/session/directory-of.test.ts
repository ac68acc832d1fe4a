import { describe, expect, test } from 'vitest';
import { directoryOf } from './directory-of.ts';

// fault 103

/** A shell in /s, from which `link` leads to /real. */
const LIVE = { ready: true, hasState: true, directory: async (path?: string) => (path === undefined ? '/s' : '/real') };
const NONE = { ready: false, hasState: false, directory: async () => undefined };
const spec = (given: object = {}) => ({ cwd: '/workspace', startupCommands: [] as string[], ...given });

describe('the directory of a command', () => {
  test.each([
    ['in a shell that is ready', {}, false, spec(), LIVE, { path: '/s' }],
    ['if the command names one, without links', { cwd: '/link' }, false, spec(), LIVE, { path: '/real' }],
    ['in a fresh shell before its opening', {}, true, spec(), NONE, { path: '/workspace' }],
    ['if the command names one, before a shell is opened', { cwd: '/link' }, true, spec(), NONE, { path: '/link' }],
    ['in a fresh shell after its opening', {}, true, spec(), LIVE, { path: '/s' }],
  ])('is known %s', async (_which, payload, opens, of, shell, directory) => {
    expect(await directoryOf(payload, opens, of, shell)).toEqual(directory);
  });

  test.each([
    ['before startup commands move a fresh shell', {}, true, spec({ startupCommands: ['cd x'] }), NONE],
    ['after startup commands have moved a fresh shell', {}, true, spec({ startupCommands: ['cd x'] }), LIVE],
    ['if it is the directory of an image', {}, true, spec({ cwd: 'image' }), NONE],
    ['in a shell that is not connected', {}, true, spec(), { ...NONE, hasState: true }],
    ['in a shell whose directory is gone', {}, false, spec(), { ...LIVE, directory: async () => undefined }],
  ])('is unknown %s', async (_where, payload, opens, of, shell) => {
    expect(await directoryOf(payload, opens, of, shell)).toEqual({ unknown: expect.any(String) });
  });

  test('is unknown for the same reason before and after startup commands', async () => {
    const of = spec({ startupCommands: ['cd x'] });
    expect(await directoryOf({}, true, of, NONE)).toEqual(await directoryOf({}, true, of, LIVE));
  });
});
