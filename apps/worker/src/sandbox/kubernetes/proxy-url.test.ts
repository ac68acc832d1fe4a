import { createSealKey, egressKeyOf, verifyEgress } from '@shellfleet/sealing';
import { describe, expect, test } from 'vitest';
import { proxyUrl } from './proxy-url.ts';

const sealKey = createSealKey();
const ref = { namespace: 'n', tenant: 't', session: 's' };
const allowedHosts = ['*.example.org', 'pypi.org:443'];
const plan = { network: 'limited', allowedHosts, deadlineMs: 60_000 } as const;
const urlOf = async (host: string) =>
  String(await proxyUrl(ref, { ...plan, cluster: { egress: { host, port: 3128 } } }, sealKey));

describe('the URL of the egress proxy', () => {
  test('has the address of the proxy and a token for what the session may reach', async () => {
    const { username, password, hostname, port } = new URL(await urlOf('127.0.0.1'));
    expect([username, hostname, port]).toEqual(['session', '127.0.0.1', '3128']);
    const { hosts, expiresAt, ...of } = verifyEgress([egressKeyOf(sealKey)], password) ?? { expiresAt: 0 };
    expect([of, hosts]).toEqual([ref, allowedHosts]);
    expect(Math.abs(expiresAt - Date.now() - 60_000)).toBeLessThan(5_000);
  });

  test('is not made for a session with another network', async () => {
    const cluster = { egress: { host: 'proxy.invalid', port: 3128 } };
    expect(await proxyUrl(ref, { ...plan, network: 'full', cluster }, sealKey)).toBeUndefined();
  });

  test('has an address of IPv6 in brackets, and none for a name that nobody knows', async () => {
    expect(await urlOf('::1')).toMatch(/@\[::1\]:3128$/);
    await expect(urlOf('proxy.invalid')).rejects.toThrow(/cannot be found: .*Check kubernetes\.egress\.host/);
  });
});
