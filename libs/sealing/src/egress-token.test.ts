import { describe, expect, test } from 'vitest';
import { type EgressStatement, egressKeyOf, signEgress, verifyEgress } from './egress-token.ts';
import { createSealKey } from './seal.ts';

const NOW = 1_000_000;
const key = egressKeyOf(createSealKey());
const statement: EgressStatement = {
  ...{ namespace: 'n', tenant: 't', session: 's', hosts: ['*.example.org', 'pypi.org:443'], expiresAt: NOW + 1 },
};

describe('the token of a session for the egress proxy', () => {
  test('gives its statement to whoever has one of the keys', () => {
    const token = signEgress(key, statement);
    expect(verifyEgress([egressKeyOf(createSealKey()), key], token, NOW)).toEqual(statement);
    expect(token).toBe(encodeURIComponent(token));
  });

  test('is worth nothing to another key, or when it has expired', () => {
    const token = signEgress(key, statement);
    expect(verifyEgress([egressKeyOf(createSealKey())], token, NOW)).toBeUndefined();
    expect(verifyEgress([], token, NOW)).toBeUndefined();
    expect(verifyEgress([key], token, NOW + 1)).toBeUndefined();
  });

  test('is worth nothing when any character is changed, cut off or added', () => {
    const token = signEgress(key, statement);
    const change = (at: number) => `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
    for (let at = 0; at < token.length; at += 1) {
      expect(verifyEgress([key], token.slice(0, at), NOW)).toBeUndefined();
      // The last character of a MAC has bits that no decoder reads, so MACs are compared as texts.
      expect(verifyEgress([key], change(at), NOW)).toBeUndefined();
    }
    for (const more of ['.', 'A', `.${token}`]) expect(verifyEgress([key], token + more, NOW)).toBeUndefined();
  });

  test('is not read when it is longer than a client can send', () => {
    const hosts = Array.from({ length: 100 }, (_, index) => `${'a'.repeat(200)}${index}.example`);
    expect(verifyEgress([key], signEgress(key, { ...statement, hosts }), NOW)).toBeUndefined();
  });
});
