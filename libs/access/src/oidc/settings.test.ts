import { OIDC_SETTINGS, type OidcValues } from '@shellfleet/protocol/api-settings';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toOidcSettings } from './settings.ts';

const schema = z.object(
  Object.fromEntries(Object.entries(OIDC_SETTINGS).map(([name, setting]) => [name, setting.schema])),
);
const parse = (env: Record<string, string>) =>
  schema.safeParse(Object.fromEntries(Object.entries(env).map(([name, value]) => [`SHELLFLEET_OIDC_${name}`, value])));
const settingsOf = (env: Record<string, string>) => toOidcSettings(parse(env).data as OidcValues);

const NEEDED = { ISSUER: 'https://id.example', AUDIENCE: 'shellfleet', TENANT: 'acme' };

describe('the settings of an issuer', () => {
  test('map claims named after the scopes by default', () => {
    expect(settingsOf(NEEDED)).toEqual({
      issuer: 'https://id.example',
      audience: 'shellfleet',
      tenant: { name: 'acme' },
      scopeClaim: 'scope',
      scopes: new Map(['submit', 'read', 'approve', 'admin'].map((scope) => [`shellfleet:${scope}`, [scope]])),
      nameClaim: 'preferred_username',
      algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    });
  });

  test('map values of a claim to several scopes', () => {
    const { TENANT, ...rest } = NEEDED;
    expect(settingsOf({ ...rest, TENANT_CLAIM: 'org', SCOPES: 'agents=submit+read, a=b=approve' })).toMatchObject({
      tenant: { claim: 'org' },
      scopes: new Map([
        ['agents', ['submit', 'read']],
        ['a=b', ['approve']],
      ]),
    });
  });

  test('are absent without an issuer', () => {
    expect(settingsOf({})).toBeUndefined();
  });

  test.each([
    [{ AUDIENCE: 'a' }, 'without SHELLFLEET_OIDC_ISSUER'],
    [{ ISSUER: NEEDED.ISSUER, TENANT: 'acme' }, 'needs SHELLFLEET_OIDC_AUDIENCE'],
    [{ ISSUER: NEEDED.ISSUER, AUDIENCE: 'a' }, 'needs one of SHELLFLEET_OIDC_TENANT and'],
    [{ ...NEEDED, TENANT_CLAIM: 'org' }, 'needs one of SHELLFLEET_OIDC_TENANT and'],
  ])('do not fit together: %j', (env, problem) => {
    expect(settingsOf(env as Record<string, string>)).toContain(problem);
  });

  test.each([
    { ISSUER: 'http://id.example' },
    { ISSUER: 'id.example' },
    { TENANT: 'a:b' },
    { SCOPES: 'agents' },
    { SCOPES: '=read' },
    { SCOPES: 'agents=write' },
    { ALGORITHMS: 'HS256' },
    { ALGORITHMS: 'none' },
    { ALGORITHMS: '' },
  ])('are refused: %j', (env) => {
    expect(parse(env as Record<string, string>).success).toBe(false);
  });

  test('allow an issuer without TLS on loopback alone', () => {
    expect(
      ['http://localhost:1', 'http://127.0.0.1', 'http://[::1]:2'].map((url) => parse({ ISSUER: url }).success),
    ).toEqual([true, true, true]);
    expect(parse({ ISSUER: 'http://127.0.0.1.example' }).success).toBe(false);
  });
});
