import fc from 'fast-check';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { sampleResult } from '../test-support/sample-result.ts';
import { OUTCOMES, type Result } from './result.ts';
import { encodeWireResult, fieldsOf, fromWireResult, type WireResult, wireResultSchema } from './wire-result.ts';

const ids = { commandId: 's.01ARZ3NDEKTSV4RRFFQ69G5FAV', sessionId: 's' };
const text = fc.oneof(fc.constant(''), fc.string({ unit: 'binary' }));
const result = fc
  .record({
    outcome: fc.constantFrom(...OUTCOMES),
    stdout: text,
    stderr: text,
    output: text,
    interleaved: fc.boolean(),
    signal: fc.constantFrom(null, 'SIGKILL'),
    hostId: fc.constantFrom(null, 'h'),
    truncated: fc.record({ bytes: fc.boolean(), lines: fc.boolean() }),
    totals: fc.record({
      stdoutBytes: fc.nat(2),
      stderrBytes: fc.nat(2),
      stdoutLines: fc.nat(1),
      stderrLines: fc.nat(1),
    }),
    redactions: fc.dictionary(fc.constantFrom('email', 'iban'), fc.nat(2), { noNullPrototype: true }),
  })
  .map(({ outcome, output, interleaved, ...rest }) => ({
    ...{ ...sampleResult(outcome), ...rest },
    output: interleaved ? output : rest.stdout + rest.stderr,
  }));

describe('a Result on the wire', () => {
  test('is unchanged after encoding and decoding, although the encoded form leaves fields out', () => {
    fc.assert(
      fc.property(result, (given) => {
        const wire = wireResultSchema.parse(JSON.parse(encodeWireResult(given)));
        expect(fromWireResult(ids, wire)).toEqual({ ...ids, ...given, deduplicated: false });
      }),
    );
  });

  test('has a reason that is not empty when its shell was not kept', () => {
    const accepts = (shell: object) => wireResultSchema.safeParse({ ...sampleResult('success'), shell }).success;
    const shells = (['partial', 'lost'] as const).flatMap((state) => [
      { state, epoch: 2 },
      { state, reason: '', epoch: 2 },
      { state, reason: 'it was idle for 10 ms', epoch: 2 },
    ]);
    expect(shells.map(accepts)).toEqual([false, false, true, false, false, true]);
  });

  test('stores no text twice, and no field with its default', () => {
    const stored = (own: object) => JSON.parse(encodeWireResult(sampleResult('success', own)));
    const bare = { outcome: 'success', shell: { state: 'kept', epoch: 0 } };
    const timings = { queuedMs: 0, startMs: 0, runMs: 0, totalMs: 0 };
    expect(stored({})).toEqual({ ...bare, timings });
    expect(stored({ stdout: 'a', output: 'a' })).toEqual({ ...bare, timings, stdout: 'a' });
    expect(stored({ stderr: 'a', output: 'a' })).toEqual({ ...bare, timings, stderr: 'a' });
    expect(stored({ stdout: 'a', stderr: 'b', output: 'ba' }).output).toBe('ba');
    const totals = { stdoutBytes: 0, stderrBytes: 2, stdoutLines: 0, stderrLines: 1 };
    expect(stored({ totals }).totals).toEqual({ stderrBytes: 2, stderrLines: 1 });
  });

  test('keeps the fields that do not depend on its outcome', () => {
    const failed = sampleResult('failure', {
      ...{ signal: 'SIGTERM', stdout: 'a', stderr: 'b', output: 'ba', truncated: { bytes: true, lines: false } },
      ...{ redactions: { email: 1 }, totals: { stdoutBytes: 1, stderrBytes: 1, stdoutLines: 1, stderrLines: 1 } },
      ...{ shell: { state: 'partial', reason: 'r', epoch: 2 }, hostId: 'h', imageDigest: 'sha256:1', attempts: 2 },
      ...{
        timings: { queuedMs: 1, startMs: 2, runMs: 3, totalMs: 6 },
        receipt: { acceptedAt: 7 },
        usage: { cpuMs: 2, peakMemoryBytes: 4_096 },
        outside: true,
        refused: 'no',
        sealedReason: 's',
      },
      ...{ denied: { what: 'files', line: 'l', mayAsk: true }, firstAttempt: { exitCode: 1, output: 'o' } },
    });
    const { outcome: _outcome, exitCode: _code, reason: _reason, ...kept } = failed;
    expect(fieldsOf(failed)).toEqual(kept);
    // The sample has every field.
    const { outcome: _o, exitCode: _e, reason: _r, ...fields } = wireResultSchema.options[0].shape;
    expect(Object.keys(kept).sort()).toEqual(Object.keys(fields).sort());
  });

  test('has an exit code for success, failure and blocked, and an error for error', () => {
    type Of<O> = Extract<Result, { outcome: O }>;
    type Own = 'success' | 'failure' | 'blocked';
    expectTypeOf<Of<Own>['exitCode']>().toEqualTypeOf<number>();
    expectTypeOf<Of<Exclude<Result['outcome'], Own>>['exitCode']>().toEqualTypeOf<null>();
    expectTypeOf<Of<'error'>['error']['code']>().toEqualTypeOf<string>();
    expectTypeOf<Of<Exclude<Result['outcome'], 'error'>>['error']>().toEqualTypeOf<undefined>();
    expectTypeOf<Of<'blocked'>['blocked']['reason']>().toEqualTypeOf<'matched' | 'too-slow'>();
    // A Result whose outcome was not checked.
    expectTypeOf<Result['exitCode']>().toEqualTypeOf<number | null>();
    expectTypeOf<NonNullable<Result['error']>['message']>().toEqualTypeOf<string>();
    // For every outcome, the stored type and the returned type agree field by field, but for the receipt.
    type Bare<T> = T extends unknown ? Omit<T, 'receipt'> : never;
    type Stored = Bare<WireResult> & { commandId: string; sessionId: string; output: string; deduplicated: boolean };
    expectTypeOf<Stored>().toExtend<Bare<Result>>();
    expectTypeOf<Omit<Of<'error'>, 'cancelReason' | 'receipt'>>().toExtend<WireResult>();
  });

  test.each([
    ['success', { exitCode: null }],
    ['failure', { reason: 'wall' }],
    ['timeout', { exitCode: 143 }],
    ['cancellation', { exitCode: 0 }],
    ['blocked', { blocked: undefined }],
    ['error', { error: undefined }],
  ] as const)('with the outcome %s is refused if it has %j', (outcome, wrong) => {
    expect(wireResultSchema.safeParse(sampleResult(outcome)).success).toBe(true);
    expect(wireResultSchema.safeParse({ ...sampleResult(outcome), ...wrong }).success).toBe(false);
  });
});
