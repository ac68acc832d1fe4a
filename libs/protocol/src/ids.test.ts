import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseCommandId, sessionIdSchema, toCommandId } from './ids.ts';
import { parseSessionJobId, sessionJobId } from './keys.ts';

const idOf = (characters: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...characters), minLength, maxLength });
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-';
const sessionId = idOf(LETTERS, 1, 128);
const entryId = idOf('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 26, 26);

test('a command id comes apart into what it was made of, dots in the session id or not', () => {
  fc.assert(
    fc.property(sessionId, entryId, (session, entry) => {
      const id = toCommandId(session, entry);
      expect(parseCommandId(id)).toEqual({ sessionId: session, entryId: entry });
      expect(id.length).toBeLessThanOrEqual(155);
    }),
  );
});

test('anything else is no command id, and nothing throws', () => {
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

test('a session job id comes apart into what it was made of, and never is what BullMQ refuses', () => {
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

test('an id holds nothing that means something to a key, a hash tag, a glob, a path or a shell', () => {
  for (const character of ':{}*?[]/\\ ~$`\'"\n\0é')
    expect(sessionIdSchema.safeParse(`a${character}`).success, character).toBe(false);
});
