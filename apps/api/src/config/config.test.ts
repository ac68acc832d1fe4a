import { readFileSync } from 'node:fs';
import { API_SETTINGS } from '@shellfleet/protocol/api-settings';
import { describe, expect, test } from 'vitest';
import { ApiConfigError, readApiConfig } from './config.ts';

describe('the settings of the server', () => {
  test('have defaults for one machine', () => {
    expect(readApiConfig({ SHELLFLEET_API_PORT: '' })).toEqual({
      ...{ host: '127.0.0.1', port: undefined, tls: undefined, insecure: false, allowedHosts: [], corsOrigins: [] },
      ...{
        rateLimit: 1_000,
        drainMs: 30_000,
        metrics: undefined,
        logLevel: 'info',
        tracing: undefined,
        oidc: undefined,
      },
    });
  });

  test.each([
    [{ SHELLFLEET_API_PORT: '70000' }, 'SHELLFLEET_API_PORT must be 0 to 65535'],
    [{ SHELLFLEET_API_TLS_CERT: 'a.pem' }, 'are set together'],
    [{ SHELLFLEET_API_TLS_CERT: '/none', SHELLFLEET_API_TLS_KEY: '/none' }, 'cannot read /none (ENOENT)'],
    [{ SHELLFLEET_API_CORS_ORIGINS: 'example.org' }, 'must be origins such as https://example.org'],
    [{ SHELLFLEET_OIDC_ISSUER: 'https://id.example' }, 'SHELLFLEET_OIDC_ISSUER needs SHELLFLEET_OIDC_AUDIENCE'],
    [{ SHELLFLEET_OIDC_ALGORITHMS: 'HS256' }, 'SHELLFLEET_OIDC_ALGORITHMS must be of RS256'],
    [{ SHELLFLEET_API_DRAIN: 'soon' }, 'SHELLFLEET_API_DRAIN must be a time such as 30s'],
  ])('refuse %j', (env, message) => {
    expect(() => readApiConfig(env)).toThrow(ApiConfigError);
    expect(() => readApiConfig(env)).toThrow(message);
  });

  test('allow an address of other machines only with TLS, or as plain HTTP on request', () => {
    expect(() => readApiConfig({ SHELLFLEET_API_HOST: '0.0.0.0' })).toThrow('keys and output can be read on the way');
    const insecure = readApiConfig({ SHELLFLEET_API_HOST: '0.0.0.0', SHELLFLEET_API_INSECURE_HTTP: '1' });
    expect(insecure.insecure).toBe(true);
    expect(readApiConfig({ SHELLFLEET_API_HOST: '::1' }).insecure).toBe(false);
  });

  test('are listed in the document about HTTP', () => {
    const page = readFileSync(new URL('../../../../docs/http.md', import.meta.url), 'utf8');
    const rows = Object.entries(API_SETTINGS).map(
      ([name, { flag, text }]) => `| \`${name}\` | \`${flag}\` | ${text} |`,
    );
    expect(rows.filter((row) => !page.includes(row))).toEqual([]);
  });
});
