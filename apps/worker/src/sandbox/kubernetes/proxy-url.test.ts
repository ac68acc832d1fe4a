import { sessionSpecSchema } from '@shellfleet/protocol';
import { createSealKey, egressKeyOf, verifyEgress } from '@shellfleet/sealing';
import { describe, expect, test } from 'vitest';
import { proxyUrl } from './proxy-url.ts';

const sealKey = createSealKey();
const ref = { namespace: 'n', tenant: 't', session: 's' };
const sandbox = { network: 'limited', allowedHosts: ['*.example.org', 'pypi.org:443'] } as const;
const spec = sessionSpecSchema.parse({
  policy: 'kubernetes',
  sandbox: { ...sandbox, allowedHosts: [...sandbox.allowedHosts] },
});
const urlOf = (host: string) => proxyUrl(ref, spec, { egress: { host, port: 3128 }, sealKey, deadlineMs: 60_000 });

describe('the URL of the egress proxy', () => {
  test('has the address of the proxy and a token for what the session may reach', async () => {
    const { username, password, hostname, port } = new URL(await urlOf('127.0.0.1'));
    expect([username, hostname, port]).toEqual(['session', '127.0.0.1', '3128']);
    const { hosts, expiresAt, ...of } = verifyEgress([egressKeyOf(sealKey)], password) ?? { expiresAt: 0 };
    expect([of, hosts]).toEqual([ref, sandbox.allowedHosts]);
    expect(Math.abs(expiresAt - Date.now() - 60_000)).toBeLessThan(5_000);
  });

  test('has an address of IPv6 in brackets, and none for a name that nobody knows', async () => {
    expect(await urlOf('::1')).toMatch(/@\[::1\]:3128$/);
    await expect(urlOf('proxy.invalid')).rejects.toThrow(/cannot be found: .*Check kubernetes\.egress\.host/);
  });
});
