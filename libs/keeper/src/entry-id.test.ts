import fc from 'fast-check';
import { ulid } from 'ulid';
import { expect, test } from 'vitest';
import { entryIdFromBytes, entryIdToBytes, toEntryId } from './entry-id.ts';

test('a ULID comes back from its 128 bits', () => {
  for (const id of ['00000000000000000000000000', '7ZZZZZZZZZZZZZZZZZZZZZZZZZ', ulid(), ulid()]) {
    expect(entryIdFromBytes(entryIdToBytes(id))).toBe(id);
  }
});

test('any 128 bits come back from their ULID', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
      expect(entryIdToBytes(entryIdFromBytes(bytes))).toEqual(bytes);
    }),
  );
});

test('the entry id is the last part of the command id, whatever the session is called', () => {
  const id = ulid();
  expect(toEntryId(`my.session-1.${id}`)).toBe(id);
});

test.each(['', 'short', '8ZZZZZZZZZZZZZZZZZZZZZZZZZ', 'UUUUUUUUUUUUUUUUUUUUUUUUUU'])('%j is no entry id', (text) => {
  expect(() => entryIdToBytes(text)).toThrow(RangeError);
});
