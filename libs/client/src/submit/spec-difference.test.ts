import { sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { specDifference } from './spec-difference.ts';

const spec = (given: object) => sessionSpecSchema.parse(given);

describe('specDifference', () => {
  test('names the paths of fields that differ, without their values', () => {
    const a = spec({ env: { A: 'x', B: 'same' }, limits: { pids: 99 }, startupCommands: ['a'] });
    const b = spec({ env: { B: 'same', C: 'y' }, startupCommands: ['a', 'b'], image: 'debian' });
    expect(specDifference(a, b)).toEqual(['env.A', 'env.C', 'image', 'limits.pids', 'startupCommands']);
  });

  test('returns no field when specs are equal after defaults', () => {
    expect(specDifference(spec({}), spec({ policy: 'docker', cwd: '/workspace' }))).toEqual([]);
  });
});
