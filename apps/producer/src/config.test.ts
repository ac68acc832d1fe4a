import { describe, expect, test } from 'vitest';
import { readCliConfig } from './config.ts';

describe('progress and color', () => {
  test.each<[string, NodeJS.ProcessEnv, boolean, { progress: boolean; color: boolean }]>([
    ['a terminal', {}, true, { progress: true, color: true }],
    ['no terminal', {}, false, { progress: false, color: false }],
    ['NO_COLOR at a terminal', { NO_COLOR: '1' }, true, { progress: true, color: false }],
    ['any value of NO_COLOR', { NO_COLOR: '0' }, true, { progress: true, color: false }],
    ['an empty NO_COLOR', { NO_COLOR: '' }, true, { progress: true, color: true }],
    ['CI at a terminal', { CI: 'true' }, true, { progress: false, color: false }],
    ['CI switched off', { CI: 'false' }, true, { progress: true, color: true }],
    ['a dumb terminal', { TERM: 'dumb' }, true, { progress: false, color: true }],
  ])('are chosen for %s', (_what, env, terminal, expected) => {
    expect(readCliConfig(env, terminal)).toMatchObject(expected);
  });
});
