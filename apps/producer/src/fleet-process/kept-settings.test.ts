import { describe, expect, test } from 'vitest';
import { describeKept } from './kept-settings.ts';

const running = {
  workers: 2,
  hosts: [
    { slots: 3, policies: ['docker', 'host'] },
    { slots: 3, policies: ['docker', 'host'] },
  ],
};

describe('the settings that a running fleet keeps', () => {
  test('are named with the options that differ, and the step that applies these', () => {
    expect(describeKept({ workers: 1, slots: 5, policies: 'docker' }, running)).toBe(
      'The running fleet keeps its own settings: --workers is 2 there, not 1; --slots is 3 there, not 5; --policies is docker,host there, not docker. `shellfleet up --replace` with the same options starts a fleet that has them, and ends the sessions of this one.',
    );
  });

  test.each([
    ['no option is given', {}],
    ['the options have the values of the fleet', { workers: 2, slots: 3, policies: 'host, docker' }],
  ])('are not mentioned when %s', (_when, asked) => {
    expect(describeKept(asked, running)).toBeUndefined();
  });
});
