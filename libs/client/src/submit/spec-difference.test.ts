import { sessionSpecSchema } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
import { specDifference } from './spec-difference.ts';

const spec = (given: object) => sessionSpecSchema.parse(given);

test('names the fields that differ, with their paths and without their values', () => {
  const a = spec({ env: { A: 'x', B: 'same' }, limits: { pids: 99 }, startupCommands: ['a'] });
  const b = spec({ env: { B: 'same', C: 'y' }, startupCommands: ['a', 'b'], image: 'debian' });
  expect(specDifference(a, b)).toEqual(['env.A', 'env.C', 'image', 'limits.pids', 'startupCommands']);
});

test('finds nothing where specs are equal after defaults', () => {
  expect(specDifference(spec({}), spec({ policy: 'docker', cwd: '/workspace' }))).toEqual([]);
});
