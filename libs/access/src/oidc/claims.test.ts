import { describe, expect, test } from 'vitest';
import { claimsToPrincipal } from './claims.ts';
import type { OidcSettings } from './settings.ts';

const settings: OidcSettings = {
  issuer: 'https://id.example',
  audience: 'shellfleet',
  tenant: { claim: 'org' },
  scopeClaim: 'groups',
  scopes: new Map([
    ['agents', ['submit', 'read']],
    ['leads', ['read', 'approve']],
  ]),
  nameClaim: 'email',
  algorithms: ['RS256'],
};
const claims = { sub: 'u-1', org: 'acme', groups: ['agents', 'leads', 'others', 7], email: 'ada@example.org' };
const toPrincipal = (change: object, of: Partial<OidcSettings> = {}) =>
  claimsToPrincipal({ ...settings, ...of }, { ...claims, ...change }, 1_000);

describe('the claims of a token', () => {
  test('give the caller, its tenant and the scopes of all its values', () => {
    expect(toPrincipal({})).toEqual({
      caller: { id: expect.stringMatching(/^oidc-[0-9a-f]{32}$/), name: 'ada@example.org' },
      tenant: 'acme',
      scopes: new Set(['submit', 'read', 'approve']),
      expiresAt: 1_000,
    });
  });

  test('give the same id to one subject of one issuer alone', () => {
    const idOf = (change: object, of?: Partial<OidcSettings>) => toPrincipal(change, of)?.caller.id;
    expect(idOf({ email: 'other@example.org' })).toBe(idOf({}));
    expect(idOf({ sub: 'u-2' })).not.toBe(idOf({}));
    expect(idOf({}, { issuer: 'https://other.example' })).not.toBe(idOf({}));
  });

  test('may have scopes as words of a text, and lie deeper', () => {
    expect(toPrincipal({ groups: 'x leads' })?.scopes).toEqual(new Set(['read', 'approve']));
    const deeper = { realm_access: { roles: ['agents'] }, 'https://a.b/org': 'deep' };
    const of: Partial<OidcSettings> = { scopeClaim: 'realm_access.roles', tenant: { claim: 'https://a.b/org' } };
    expect(toPrincipal(deeper, of)).toMatchObject({ tenant: 'deep', scopes: new Set(['submit', 'read']) });
  });

  test.each([
    { sub: undefined },
    { sub: '' },
    { sub: 7 },
    { org: undefined },
    { org: 'a:b' },
    { org: ['acme'] },
    { groups: undefined },
    { groups: [] },
    { groups: 'agents,leads' },
    { groups: { agents: true } },
    { groups: ['constructor', '__proto__'] },
  ])('are refused: %j', (change) => {
    expect(toPrincipal(change)).toBeUndefined();
  });

  test.each([{ email: undefined }, { email: 'a\u001b[2Jb' }, { email: '\u202eda' }, { email: 'x'.repeat(129) }])(
    'have the subject as the name in place of %j',
    (change) => {
      expect(toPrincipal(change)?.caller.name).toBe('u-1');
    },
  );

  test('read no property that every object has', () => {
    expect(toPrincipal({}, { tenant: { claim: 'constructor.name' } })).toBeUndefined();
  });
});
