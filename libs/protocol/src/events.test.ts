import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeStoredChunk, encodeStoredChunk, type StoredChunk } from './events.ts';

const count = fc.nat({ max: 999_999_999_999_999 });
const ruleType = fc.string({ maxLength: 12 }).filter((type) => type !== '__proto__');
const entry: fc.Arbitrary<StoredChunk> = fc.record(
  {
    stream: fc.constantFrom('stdout', 'stderr'),
    seq: count,
    rawFrom: count,
    rawTo: count,
    omittedBytes: count,
    lines: count,
    offset: count,
    redactions: fc.dictionary(ruleType, count, { minKeys: 1 }),
    blocked: fc.record({ type: ruleType, reason: fc.constantFrom('matched', 'too-slow') }),
    data: fc.uint8Array({ maxLength: 300 }),
  },
  { requiredKeys: ['stream', 'seq', 'rawFrom', 'rawTo', 'omittedBytes', 'lines', 'offset', 'data'] },
);

describe('an output chunk', () => {
  test('keeps all its fields and bytes when it is encoded and decoded', () => {
    fc.assert(
      fc.property(entry, (given) => {
        expect(decodeStoredChunk(encodeStoredChunk(given))).toEqual(given);
      }),
    );
  });

  test('is not decoded from a text that ends within the header, or from other text', () => {
    fc.assert(
      fc.property(entry, fc.nat(), (given, at) => {
        const bytes = encodeStoredChunk({ ...given, data: new Uint8Array() });
        expect(decodeStoredChunk(bytes.subarray(0, at % bytes.byteLength))).toBeUndefined();
      }),
    );
    for (const text of [
      '',
      '\n',
      '3 0 0 0 0 0 0\n',
      '1 0 0 0 0 0\n',
      '1 0 0 0 0 0 0 0\n',
      '1 -1 0 0 0 0 0\n',
      '1 0 0 0 0 0 1e3\n',
      '1  0 0 0 0 0 0\n',
      '1 0 0 0 0 0 0 {}x\n',
      '1 0 0 0 0 0 0 {"more":1}\n',
      '1 0 0 0 0 0 0 {"redactions":{"email":"1"}}\n',
    ])
      expect(decodeStoredChunk(Buffer.from(text)), text).toBeUndefined();
  });

  test('is decoded from any bytes, or refused without an exception', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const decoded = decodeStoredChunk(bytes);
        if (decoded !== undefined) expect(decoded.data.byteLength).toBeLessThan(bytes.byteLength);
      }),
    );
  });
});
