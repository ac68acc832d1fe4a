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

test('the wire carries no text twice', () => {
  expect('output' in toWireResult({ ...emptyResult('success', { stdout: 'a' }), output: 'a' })).toBe(false);
  expect('output' in toWireResult({ ...emptyResult('success', { stderr: 'a' }), output: 'a' })).toBe(false);
  expect(toWireResult({ ...emptyResult('success', { stdout: 'a', stderr: 'b' }), output: 'ba' }).output).toBe('ba');
});
