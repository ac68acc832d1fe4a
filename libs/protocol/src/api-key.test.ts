import { describe, expect, test } from 'vitest';
import { apiKeyIdOf, apiKeyNameSchema, apiKeyText, scopesSchema } from './api-key.ts';

const id = '0123456789abcdef';
const secret = `${'A-z_'.repeat(10)}xyz`;

describe('the text of an API key', () => {
  test('has its id', () => {
    expect(apiKeyIdOf(apiKeyText(id, secret))).toBe(id);
  });

  test.each([
    '',
    'sfk_',
    apiKeyText(id.toUpperCase(), secret),
    apiKeyText(id, `${secret}x`),
    apiKeyText(id, secret.slice(1)),
    apiKeyText(id, secret.replace('-', '+')),
    ` ${apiKeyText(id, secret)}`,
    `${apiKeyText(id, secret)}\n`,
  ])('has a fixed form, unlike %j', (text) => {
    expect(apiKeyIdOf(text)).toBeUndefined();
  });
});

describe('the name of an API key', () => {
  test.each(['ci', 'alice@laptop', 'a.b_c-d', 'x'.repeat(64)])('may be %s', (name) => {
    expect(apiKeyNameSchema.parse(name)).toBe(name);
  });

  test.each(['', 'a b', 'x'.repeat(65), 'a\u001b[2J', id])('may not be %j', (name) => {
    expect(apiKeyNameSchema.safeParse(name).success).toBe(false);
  });
});

describe('a list of scopes', () => {
  test('is put into one order, each scope once', () => {
    expect(scopesSchema.parse(['read', 'submit', 'read'])).toEqual(['submit', 'read']);
  });

  test.each([[[]], [['write']], ['read'], [undefined]])('may not be %j', (scopes) => {
    expect(scopesSchema.safeParse(scopes).success).toBe(false);
  });
});
