import { expect, test } from 'vitest';
import { entryPayloadSchema, parseEntryPayload } from './entry-payload.ts';
import { MOST_KILL_GRACE_MS } from './execution-options.ts';
import { LIMITS } from './limits.ts';

const PLAIN = { type: 'command', script: 'true', timeoutMs: 5, killGraceMs: 1, encoding: 'utf8' };
const FIELDS: Record<string, unknown[]> = {
  type: ['command', 'file', 'restart', 'other', undefined],
  script: ['true', ' ', '', 'a\0b', '\ud800', '😀', 5, undefined, 'é'.repeat(LIMITS.scriptBytes / 2 + 1)],
  timeoutMs: [1, 0, -0, 0.5, LIMITS.timeoutMs, LIMITS.timeoutMs + 1, Number.NaN, '5', undefined],
  killGraceMs: [1, 0, -0, 0.5, MOST_KILL_GRACE_MS, MOST_KILL_GRACE_MS + 1, null, undefined],
  encoding: ['utf8', 'base64', 'latin1', undefined],
  env: [{ A: 'x' }, { IFS: 'x' }, undefined],
  unknown: ['field'],
};

/** What a sealed payload may hold, as JSON gives it. */
const PAYLOADS = Object.entries(FIELDS).flatMap(([name, values]) =>
  values.map((value) =>
    Object.fromEntries(Object.entries({ ...PLAIN, [name]: value }).filter(([, v]) => v !== undefined)),
  ),
);

test.each(PAYLOADS.map((payload) => [JSON.stringify(payload).slice(0, 120), payload]))(
  'a payload is read as the schema reads it, with and without its shortcut: %s',
  (_, payload) => {
    const { success, data } = entryPayloadSchema.safeParse(payload);
    if (success) expect(parseEntryPayload(payload, () => 'It')).toStrictEqual(data);
    else expect(() => parseEntryPayload(payload, () => 'It')).toThrow('It is not valid');
  },
);

test('what is no object is refused', () => {
  for (const value of [null, 5, 'text', [PLAIN]])
    expect(() => parseEntryPayload(value, () => 'It')).toThrow('It is not valid');
});
