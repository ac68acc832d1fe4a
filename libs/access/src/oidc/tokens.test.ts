import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWK,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { OidcSettings } from './settings.ts';
import { OidcTokens } from './tokens.ts';

/** A real issuer on loopback, whose keys the tests change. */
let server: Server;
let issuer: string;
let fetches: string[];
let documentOf: (issuer: string) => object;
let keys: JWK[];
let isDown = false;
let signing: { privateKey: CryptoKey; publicKey: CryptoKey };

beforeAll(async () => {
  signing = await generateKeyPair('RS256');
  server = createServer((request, response) => {
    fetches.push(request.url ?? '');
    const body = request.url === '/keys' ? { keys } : documentOf(issuer);
    response.writeHead(isDown ? 500 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
beforeEach(async () => {
  fetches = [];
  isDown = false;
  documentOf = (of) => ({ issuer: of, jwks_uri: `${of}/keys` });
  keys = [{ ...(await exportJWK(signing.publicKey)), kid: 'one', alg: 'RS256' }];
});

const open = (change: Partial<OidcSettings> = {}, refetchAfterMs = 30_000) =>
  new OidcTokens(
    {
      ...{ issuer, audience: 'shellfleet', tenant: { name: 'acme' }, scopeClaim: 'scope', nameClaim: 'name' },
      ...{ scopes: new Map([['sf:read', ['read']]]), algorithms: ['RS256', 'ES256'] },
      ...change,
    },
    refetchAfterMs,
  );

type Claims = Record<string, unknown>;

const nowS = () => Math.floor(Date.now() / 1_000);
const claims = (change: Claims = {}): JWTPayload => ({
  ...{ iss: issuer, aud: 'shellfleet', sub: 'u-1', exp: nowS() + 600, scope: 'openid sf:read', name: 'Ada' },
  ...change,
});
const sign = (change?: Claims, key = signing.privateKey, header = {}) =>
  new SignJWT(claims(change)).setProtectedHeader({ alg: 'RS256', kid: 'one', ...header }).sign(key);

describe('a token of an OpenID Connect issuer', () => {
  test('is accepted, with the expiry of the token', async () => {
    const exp = nowS() + 600;
    expect(await open().find(await sign({ exp }))).toEqual({
      caller: { id: expect.stringMatching(/^oidc-/), name: 'Ada' },
      tenant: 'acme',
      scopes: new Set(['read']),
      expiresAt: (exp + 30) * 1_000,
    });
  });

  test('is accepted for one of several audiences, by a clock that is 25 s wrong', async () => {
    const token = await sign({ aud: ['other', 'shellfleet'], exp: nowS() - 25, nbf: nowS() + 25 });
    expect(await open().find(token)).toMatchObject({ tenant: 'acme' });
  });

  test.each<[string, Claims]>([
    ['another audience', { aud: 'other' }],
    ['no audience', { aud: undefined }],
    ['another issuer', { iss: 'https://other.example' }],
    ['no issuer', { iss: undefined }],
    ['an expiry 31 s ago', { exp: Math.floor(Date.now() / 1_000) - 31 }],
    ['no expiry', { exp: undefined }],
    ['a beginning in the future', { nbf: Math.floor(Date.now() / 1_000) + 60 }],
    ['no subject', { sub: undefined }],
    ['no scope of ours', { scope: 'openid' }],
  ])('is refused with %s', async (_what, change) => {
    expect(await open().find(await sign(change))).toBeUndefined();
  });

  test('is refused with the algorithm none', async () => {
    const { exp, ...rest } = claims();
    const token = new UnsecuredJWT(rest).setExpirationTime(exp ?? 0).encode();
    for (const text of [token, `${token}x`]) expect(await open().find(text)).toBeUndefined();
  });

  test('is refused with HS256 and the public key as the secret', async () => {
    const pem = new TextEncoder().encode(await exportSPKI(signing.publicKey));
    const token = await new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(pem);
    expect(await open().find(token)).toBeUndefined();
  });

  test('is refused with an algorithm that the settings leave out', async () => {
    expect(await open({ algorithms: ['ES256'] }).find(await sign())).toBeUndefined();
  });

  test('is refused with the signature of another key, and when it was changed', async () => {
    const other = await generateKeyPair('RS256');
    const jwk = await exportJWK(other.publicKey);
    const [header = '', payload = '', signature = ''] = (await sign()).split('.');
    const changed = Buffer.from(JSON.stringify(claims({ sub: 'u-2' }))).toString('base64url');
    for (const token of [
      await sign({}, other.privateKey),
      await sign({}, other.privateKey, { jwk }),
      await sign({}, other.privateKey, { jku: `${issuer}/evil`, kid: 'evil' }),
      `${header}.${changed}.${signature}`,
      `${header}.${payload}.`,
      `${header}.${payload}`,
      'a.b.c',
      '',
      'x'.repeat(20_000),
    ])
      expect(await open().find(token), token.slice(0, 40)).toBeUndefined();
    expect(fetches).not.toContain('/evil');
  });
});

describe('the keys of an issuer', () => {
  test('are fetched once for many tokens', async () => {
    const tokens = open();
    const token = await sign();
    await Promise.all(Array.from({ length: 20 }, () => tokens.find(token)));
    await tokens.find(token);
    expect(fetches).toEqual(['/.well-known/openid-configuration', '/keys']);
  });

  test('are fetched again for a new key id, when some time has passed', async () => {
    const [slow, quick] = [open(), open({}, 0)];
    await Promise.all([slow, quick].map(async (tokens) => tokens.find(await sign())));
    const next = await generateKeyPair('ES256');
    keys = [{ ...(await exportJWK(next.publicKey)), kid: 'two', alg: 'ES256' }];
    const token = await sign({}, next.privateKey, { alg: 'ES256', kid: 'two' });
    expect(await slow.find(token)).toBeUndefined();
    expect(await quick.find(token)).toMatchObject({ tenant: 'acme' });
    expect(await quick.find(await sign())).toBeUndefined();
  });

  test('are not fetched for each of many unknown key ids', async () => {
    const tokens = open();
    for (let n = 0; n < 5; n++) await tokens.find(await sign({}, signing.privateKey, { kid: `k-${n}` }));
    expect(fetches).toHaveLength(2);
  });

  test('may be out of reach for a time', async () => {
    const tokens = open();
    isDown = true;
    await expect(tokens.find(await sign())).rejects.toMatchObject({ code: 'ISSUER_UNAVAILABLE', retryable: true });
    isDown = false;
    expect(await tokens.find(await sign())).toMatchObject({ tenant: 'acme' });
  });

  test.each<[string, (of: string) => object]>([
    ['another issuer', (of) => ({ issuer: 'https://other.example', jwks_uri: `${of}/keys` })],
    ['no place of keys', (of) => ({ issuer: of })],
  ])('are not used if the discovery document has %s', async (_what, document) => {
    documentOf = document;
    await expect(open().find(await sign())).rejects.toMatchObject({ code: 'ISSUER_UNAVAILABLE' });
  });

  test('are used only if exactly one of them fits', async () => {
    keys = [...keys, ...keys];
    expect(await open().find(await sign())).toBeUndefined();
  });
});
