import fc from 'fast-check';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { entryIdFromBytes, entryIdToBytes, toEntryId } from './entry-id.ts';

describe('the id of an entry', () => {
  test('is the same ULID after conversion to 128 bits and back', () => {
    for (const id of ['00000000000000000000000000', '7ZZZZZZZZZZZZZZZZZZZZZZZZZ', ulid(), ulid()]) {
      expect(entryIdFromBytes(entryIdToBytes(id))).toBe(id);
    }
  });

  test('is the same 128 bits after conversion to a ULID and back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        expect(entryIdToBytes(entryIdFromBytes(bytes))).toEqual(bytes);
      }),
    );
  });

  test('is the last part of the command id, for any session id', () => {
    const id = ulid();
    expect(toEntryId(`my.session-1.${id}`)).toBe(id);
  });

  test.each(['', 'short', '8ZZZZZZZZZZZZZZZZZZZZZZZZZ', 'UUUUUUUUUUUUUUUUUUUUUUUUUU'])(
    'is not made from %j',
    (text) => {
      expect(() => entryIdToBytes(text)).toThrow(RangeError);
    },
  );
});
