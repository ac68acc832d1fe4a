import { expect, test } from 'vitest';
import { redactJson } from './redact-json.ts';

/** Finds one fixed text, and one that counts only after a word. */
const redact = (text: string) =>
  text.replaceAll('planted-token', '[REDACTED]').replace(/(?<=password: )hunter2-and-more/g, '[REDACTED_PASSWORD]');

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

test('strings are redacted unescaped, so a match may span lines', () => {
  const lines = (text: string) => text.replace(/BEGIN\n.*\nEND/, '[REDACTED]');
  expect(redactJson(['BEGIN\nsecret\nEND'], lines)).toEqual(['[REDACTED]']);
});

test('keys that are equal after redaction get a suffix', () => {
  const value = { '1 planted-token': 1, 'planted-token': 2, '[REDACTED]': 3 };
  expect(redactJson(value, redact)).toEqual({ '1 [REDACTED]': 1, '[REDACTED]': 2, '[REDACTED]_': 3 });
});

test('a key called __proto__ stays a key', () => {
  const value = JSON.parse('{"__proto__":{"admin":true},"a":"text"}');
  expect(JSON.stringify(redactJson(value, redact))).toBe('{"__proto__":{"admin":true},"a":"text"}');
});
