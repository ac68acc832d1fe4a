import { createSealKey, hostDirectoryName } from '@shellfleet/sealing';
import { describe, expect, test } from 'vitest';
import type { HostDirectory } from './read-audit.ts';
import { verifyHosts } from './verify-hosts.ts';

// tests/e2e/audit.test.ts verifies audits of real hosts.

const sealKeys = [createSealKey()];

/** Returns the directory of a host whose audit has no record. */
function directoryOf(namespace: string, host: string): HostDirectory {
  const path = `/state/hosts/${hostDirectoryName(host)}`;
  const audit = { namespace, host, chains: [] };
  return { name: hostDirectoryName(host), path, ownId: undefined, key: host, auditPath: `${path}/audit`, audit };
}

const known = (namespace: string, host: string, tenants: string[] = []) => ({
  namespace,
  host,
  heads: new Map(tenants.map((tenant) => [tenant, [{ n: 1, mac: 'mac' }]])),
});

describe('verifyHosts', () => {
  test('keeps the audits of equal host ids in two fleets apart', () => {
    const directories = [directoryOf('one', 'h')];
    const hosts = [known('two', 'h', ['t'])];
    expect(verifyHosts({ stateDirectory: '/state', directories, hosts, sealKeys })).toEqual({
      findings: [
        {
          type: 'missing',
          host: 'h',
          tenant: '*',
          where: directories[0]?.auditPath,
          message: 'the audit of this host is missing',
        },
      ],
      records: 0,
      chains: 0,
      uncompared: ['h'],
    });
  });

  test('reports a chain with only a head as cut off', () => {
    const directories = [directoryOf('one', 'h')];
    const { findings, chains, uncompared } = verifyHosts({
      ...{ stateDirectory: '/state', directories, sealKeys },
      hosts: [known('one', 'h', ['t'])],
    });
    expect({ findings, chains, uncompared }).toEqual({
      findings: [
        expect.objectContaining({ type: 'cut-off', host: 'h', tenant: 't', where: `${directories[0]?.auditPath}/t-t` }),
      ],
      chains: 1,
      uncompared: [],
    });
  });
});
