import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseCommandId, sessionIdSchema, toCommandId } from './ids.ts';
import { parseSessionJobId, sessionJobId } from './keys.ts';

const idOf = (characters: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...characters), minLength, maxLength });
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-';
const sessionId = idOf(LETTERS, 1, 128);
const entryId = idOf('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 26, 26);

describe('ids', () => {
  test('a command id is parsed into its parts, even with dots in the session id', () => {
    fc.assert(
      fc.property(sessionId, entryId, (session, entry) => {
        const id = toCommandId(session, entry);
        expect(parseCommandId(id)).toEqual({ sessionId: session, entryId: entry });
        expect(id.length).toBeLessThanOrEqual(155);
      }),
    );
  });

  test('other text is parsed to no command id, and throws nothing', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const parsed = parseCommandId(text);
        if (parsed !== undefined) expect(toCommandId(parsed.sessionId, parsed.entryId)).toBe(text);
      }),
    );
    const entry = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
    for (const text of [
      entry,
      `.${entry}`,
      `s.${entry.toLowerCase()}`,
      `s.${entry}\n`,
      `s:x.${entry}`,
      `s.${entry}.`,
      `${'x'.repeat(129)}.${entry}`,
    ])
      expect(parseCommandId(text), text).toBeUndefined();
  });

  test('a session job id is parsed into its parts, and never refused by BullMQ', () => {
    fc.assert(
      fc.property(sessionId, sessionId, (tenant, session) => {
        const id = sessionJobId(tenant, session);
        expect(parseSessionJobId(id)).toEqual({ tenant, session });
        expect(id).not.toMatch(/:|^\d+$/);
      }),
    );
    for (const text of ['', 's~a', 's~a~b~c', 's~a~b\n', 's~~b', 's~a:b~c'])
      expect(parseSessionJobId(text), text).toBeUndefined();
  });

  test('a session id has no special characters of keys, globs, paths or shells', () => {
    for (const character of ':{}*?[]/\\ ~$`\'"\n\0é')
      expect(sessionIdSchema.safeParse(`a${character}`).success, character).toBe(false);
  });
});
