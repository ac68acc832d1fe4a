import { describe, expect, test } from 'vitest';
import { directoryOf } from './directory-of.ts';

// fault 103

/** A shell in /s, from which `link` leads to /real. */
const LIVE = { ready: true, hasState: true, directory: async (path?: string) => (path === undefined ? '/s' : '/real') };
const NONE = { ready: false, hasState: false, directory: async () => undefined };
const spec = (given: object = {}) => ({ cwd: '/workspace', startupCommands: [] as string[], ...given });

describe('the directory of a command', () => {
  test.each([
    ['of a shell that is ready', {}, false, spec(), LIVE, { path: '/s' }],
    ['that a command names, without links', { cwd: '/link' }, false, spec(), LIVE, { path: '/real' }],
    ['of a fresh shell, before it is opened', {}, true, spec(), NONE, { path: '/workspace' }],
    ['that a command names, before a shell is opened', { cwd: '/link' }, true, spec(), NONE, { path: '/link' }],
    ['of a fresh shell, once it is opened', {}, true, spec(), LIVE, { path: '/s' }],
  ])('is known %s', async (_which, payload, opens, of, shell, directory) => {
    expect(await directoryOf(payload, opens, of, shell)).toEqual(directory);
  });

  test.each([
    ['where startup commands move the shell, before', {}, true, spec({ startupCommands: ['cd x'] }), NONE],
    ['where startup commands have moved the shell', {}, true, spec({ startupCommands: ['cd x'] }), LIVE],
    ['in the directory of an image', {}, true, spec({ cwd: 'image' }), NONE],
    ['of a shell that is not connected', {}, true, spec(), { ...NONE, hasState: true }],
    ['of a shell whose directory is gone', {}, false, spec(), { ...LIVE, directory: async () => undefined }],
  ])('is unknown %s', async (_where, payload, opens, of, shell) => {
    expect(await directoryOf(payload, opens, of, shell)).toEqual({ unknown: expect.any(String) });
  });

  test('is the same unknown before and after startup commands have run', async () => {
    const of = spec({ startupCommands: ['cd x'] });
    expect(await directoryOf({}, true, of, NONE)).toEqual(await directoryOf({}, true, of, LIVE));
  });
});
