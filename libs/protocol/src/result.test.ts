import fc from 'fast-check';
import { expect, test } from 'vitest';
import { emptyResult, fromWireResult, OUTCOMES, toWireResult, wireResultSchema } from './result.ts';

const ids = { commandId: 's.01ARZ3NDEKTSV4RRFFQ69G5FAV', sessionId: 's' };
const text = fc.oneof(fc.constant(''), fc.string({ unit: 'binary' }));
const result = fc
  .record({
    outcome: fc.constantFrom(...OUTCOMES),
    stdout: text,
    stderr: text,
    output: text,
    interleaved: fc.boolean(),
  })
  .map(({ outcome, stdout, stderr, output, interleaved }) => ({
    ...emptyResult(outcome),
    stdout,
    stderr,
    output: interleaved ? output : stdout + stderr,
  }));

test('a Result comes back as it was, whatever was left out on the wire', () => {
  fc.assert(
    fc.property(result, (given) => {
      const wire = wireResultSchema.parse(JSON.parse(JSON.stringify(toWireResult(given))));
      expect(fromWireResult(ids, wire)).toEqual({ ...ids, ...given, deduplicated: false });
    }),
  );
});

test('a Result whose shell was not kept has a reason, which is not empty', () => {
  const accepts = (shell: object) => wireResultSchema.safeParse({ ...emptyResult('success'), shell }).success;
  const shells = (['partial', 'lost'] as const).flatMap((state) => [
    { state, epoch: 2 },
    { state, reason: '', epoch: 2 },
    { state, reason: 'it was idle for 10 ms', epoch: 2 },
  ]);
  expect(shells.map(accepts)).toEqual([false, false, true, false, false, true]);
});

test('the wire carries no text twice', () => {
  expect('output' in toWireResult({ ...emptyResult('success', { stdout: 'a' }), output: 'a' })).toBe(false);
  expect('output' in toWireResult({ ...emptyResult('success', { stderr: 'a' }), output: 'a' })).toBe(false);
  expect(toWireResult({ ...emptyResult('success', { stdout: 'a', stderr: 'b' }), output: 'ba' }).output).toBe('ba');
});
