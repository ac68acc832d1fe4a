import { createSealKey, hostFolderName } from '@shellfleet/sealing';
import { describe, expect, test } from 'vitest';
import type { HostFolder } from './read-audit.ts';
import { verifyHosts } from './verify-hosts.ts';

// tests/e2e/audit.test.ts verifies audits of real hosts.

const sealKeys = [createSealKey()];

/** Returns the folder of a host whose audit has no record. */
function folderOf(namespace: string, host: string): HostFolder {
  const path = `/state/hosts/${hostFolderName(host)}`;
  const audit = { namespace, host, chains: [] };
  return { name: hostFolderName(host), path, ownId: undefined, key: host, auditPath: `${path}/audit`, audit };
}

const known = (namespace: string, host: string, tenants: string[] = []) => ({
  namespace,
  host,
  heads: new Map(tenants.map((tenant) => [tenant, [{ n: 1, mac: 'mac' }]])),
});

describe('verifyHosts', () => {
  test('keeps the audits of equal host ids in two fleets apart', () => {
    const folders = [folderOf('one', 'h')];
    const hosts = [known('two', 'h', ['t'])];
    expect(verifyHosts({ stateFolder: '/state', folders, hosts, sealKeys })).toEqual({
      findings: [
        {
          type: 'missing',
          host: 'h',
          tenant: '*',
          where: folders[0]?.auditPath,
          message: 'the audit of this host is missing',
        },
      ],
      records: 0,
      chains: 0,
      uncompared: ['h'],
    });
  });

  test('reports a chain with only a head as cut off', () => {
    const folders = [folderOf('one', 'h')];
    const { findings, chains, uncompared } = verifyHosts({
      ...{ stateFolder: '/state', folders, sealKeys },
      hosts: [known('one', 'h', ['t'])],
    });
    expect({ findings, chains, uncompared }).toEqual({
      findings: [
        expect.objectContaining({ type: 'cut-off', host: 'h', tenant: 't', where: `${folders[0]?.auditPath}/t-t` }),
      ],
      chains: 1,
      uncompared: [],
    });
  });
});
