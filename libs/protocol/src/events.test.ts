import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeOutputEntry, encodeOutputEntry, type OutputEntry } from './events.ts';

const count = fc.nat({ max: 999_999_999_999_999 });
const entry: fc.Arbitrary<OutputEntry> = fc.record({
  stream: fc.constantFrom('stdout', 'stderr'),
  seq: count,
  rawFrom: count,
  rawTo: count,
  omittedBytes: count,
  lines: count,
  data: fc.uint8Array({ maxLength: 300 }),
});

test('an output entry comes back as it was, with any bytes', () => {
  fc.assert(
    fc.property(entry, (given) => {
      expect(decodeOutputEntry(encodeOutputEntry(given))).toEqual(given);
    }),
  );
});

test('what is cut within the header, or is something else, is no output entry', () => {
  fc.assert(
    fc.property(entry, fc.nat(), (given, at) => {
      const bytes = encodeOutputEntry({ ...given, data: new Uint8Array() });
      expect(decodeOutputEntry(bytes.subarray(0, at % bytes.byteLength))).toBeUndefined();
    }),
  );
  for (const text of [
    '',
    '\n',
    '3 0 0 0 0 0\n',
    '1 0 0 0 0\n',
    '1 0 0 0 0 0 0\n',
    '1 -1 0 0 0 0\n',
    '1 0 0 0 0 1e3\n',
    '1  0 0 0 0 0\n',
  ])
    expect(decodeOutputEntry(Buffer.from(text)), text).toBeUndefined();
});

test('any bytes decode or are refused, and never throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const decoded = decodeOutputEntry(bytes);
      if (decoded !== undefined) expect(decoded.data.byteLength).toBeLessThan(bytes.byteLength);
    }),
  );
});
