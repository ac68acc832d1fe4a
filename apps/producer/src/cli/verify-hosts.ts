import { join } from 'node:path';
import type { AuditFinding } from '@shellfleet/sealing';
import type { KnownHost } from './kept-heads.ts';
import { findMisplaced, isDirectoryOf } from './misplaced-audits.ts';
import { type AuditDirectory, type HostAudit, type HostDirectory, verifyDirectory } from './read-audit.ts';

interface HostFinding extends AuditFinding {
  host: string;
  /** Tenant of the chain, or `*` for the whole audit. */
  tenant: string;
}

export interface VerifiedHosts {
  findings: HostFinding[];
  records: number;
  chains: number;
  /** Hosts without a known head to compare their audit with. */
  uncompared: string[];
}

/**
 * Verifies the audits in `directories`. Reports each of `hosts` without an audit, and each head without a chain,
 * because an attacker can remove whole audits and chains.
 */
export function verifyHosts({
  stateDirectory,
  directories,
  hosts,
  sealKeys,
}: {
  stateDirectory: string;
  directories: readonly HostDirectory[];
  hosts: readonly KnownHost[];
  sealKeys: readonly string[];
}): VerifiedHosts {
  const findings: HostFinding[] = [
    ...findMissing(stateDirectory, directories, hosts),
    ...findMisplaced(directories),
  ].map((finding) => ({ tenant: '*', ...finding }));
  let records = 0;
  let chains = 0;
  const uncompared: string[] = [];
  for (const { audit, auditPath } of directories) {
    if (audit === undefined) continue;
    const heads = hosts.find((known) => isSame(audit, known))?.heads;
    if (heads === undefined) uncompared.push(audit.host);
    for (const chain of withRemoved(audit, heads ?? new Map())) {
      const verified = verifyDirectory(chain, sealKeys, heads?.get(chain.tenant) ?? []);
      records += verified.records;
      chains += 1;
      const { host, tenant } = chain;
      for (const { where, ...finding } of verified.findings)
        findings.push({ host, tenant, where: where || join(auditPath, `t-${tenant}`), ...finding });
    }
  }
  return { findings, records, chains, uncompared };
}

function findMissing(stateDirectory: string, directories: readonly HostDirectory[], hosts: readonly KnownHost[]) {
  const missing = (host: string, where: string, message: string) => ({
    type: 'missing' as const,
    host,
    where,
    message,
  });
  const all = join(stateDirectory, 'hosts');
  // A machine whose audits were all removed must not pass as a machine that never had any.
  if (directories.length === 0 && hosts.length === 0) return [missing('*', all, 'no host has its audit here')];
  const isThere = (known: KnownHost) => directories.some(({ audit }) => audit !== undefined && isSame(audit, known));
  const gone = hosts.filter((known) => !isThere(known));
  const directoryOf = (host: string) =>
    directories.find((directory) => isDirectoryOf(directory, host))?.auditPath ?? all;
  const unnamed = directories.filter(
    (directory) => directory.audit === undefined && !gone.some(({ host }) => isDirectoryOf(directory, host)),
  );
  return [
    ...gone.map(({ host }) => missing(host, directoryOf(host), 'the audit of this host is missing')),
    // Every worker makes an audit when it starts.
    ...unnamed.map(({ ownId, name, auditPath }) => missing(ownId ?? name, auditPath, 'the audit is missing')),
  ];
}

const isSame = (one: { namespace: string; host: string }, other: { namespace: string; host: string }) =>
  one.namespace === other.namespace && one.host === other.host;

/** Returns the chains of a host, including chains that are gone and of which only a head is known. */
function withRemoved({ namespace, host, chains }: HostAudit, heads: KnownHost['heads']): AuditDirectory[] {
  const removed = [...heads.keys()].filter((tenant) => !chains.some((chain) => chain.tenant === tenant));
  return [...chains, ...removed.map((tenant) => ({ namespace, host, tenant, segments: [] }))];
}
