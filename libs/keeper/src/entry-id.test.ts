import fc from 'fast-check';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { entryIdFromBytes, entryIdToBytes, toEntryId } from './entry-id.ts';

describe('the id of an entry', () => {
  test('is a ULID that its 128 bits restore', () => {
    for (const id of ['00000000000000000000000000', '7ZZZZZZZZZZZZZZZZZZZZZZZZZ', ulid(), ulid()]) {
      expect(entryIdFromBytes(entryIdToBytes(id))).toBe(id);
    }
  });

  test('is any 128 bits that their ULID restores', () => {
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
