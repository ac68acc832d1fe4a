import { describe, expect, test } from 'vitest';
import { redactJson } from './redact-json.ts';

/** Finds one fixed text, and one that counts only after a word. */
const redact = (text: string) =>
  text.replaceAll('planted-token', '[REDACTED]').replace(/(?<=password: )hunter2-and-more/g, '[REDACTED_PASSWORD]');

describe('the redaction of JSON', () => {
  test('replaces in strings and keys, at any depth, and leaves the rest as it was', () => {
    const value = {
      a: ['x planted-token y', 1, null, true, { 'planted-token': 'planted-token' }],
      password: 'hunter2-and-more',
      other: 'hunter2-and-more',
      short: 'x',
    };
    expect(redactJson(value, redact)).toEqual({
      a: ['x [REDACTED] y', 1, null, true, { '[REDACTED]': '[REDACTED]' }],
      password: '[REDACTED_PASSWORD]',
      other: 'hunter2-and-more',
      short: 'x',
    });
  });

  test('redacts unescaped strings, so that a match may span lines', () => {
    const lines = (text: string) => text.replace(/BEGIN\n.*\nEND/, '[REDACTED]');
    expect(redactJson(['BEGIN\nsecret\nEND'], lines)).toEqual(['[REDACTED]']);
  });

  test('adds a suffix to keys that are equal after redaction', () => {
    const value = { '1 planted-token': 1, 'planted-token': 2, '[REDACTED]': 3 };
    expect(redactJson(value, redact)).toEqual({ '1 [REDACTED]': 1, '[REDACTED]': 2, '[REDACTED]_': 3 });
  });

  test('keeps a key called __proto__', () => {
    const value = JSON.parse('{"__proto__":{"admin":true},"a":"text"}');
    expect(JSON.stringify(redactJson(value, redact))).toBe('{"__proto__":{"admin":true},"a":"text"}');
  });
});
