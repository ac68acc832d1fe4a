import { join } from 'node:path';
import type { AuditFinding } from '@shellfleet/sealing';
import type { KnownHost } from './kept-heads.ts';
import { findMisplaced, isFolderOf } from './misplaced-audits.ts';
import { type AuditFolder, type HostAudit, type HostFolder, verifyFolder } from './read-audit.ts';

interface HostFinding extends AuditFinding {
  host: string;
  /** Tenant of the chain, or `*` for the whole audit. */
  tenant: string;
}

export interface VerifiedHosts {
  findings: HostFinding[];
  records: number;
  chains: number;
  /** Hosts without a known head. */
  uncompared: string[];
}

/**
 * Checks that each of `hosts` has its audit, each head its chain, and then the folders, which an attacker can change.
 */
export function verifyHosts({
  stateFolder,
  folders,
  hosts,
  sealKeys,
}: {
  stateFolder: string;
  folders: readonly HostFolder[];
  hosts: readonly KnownHost[];
  sealKeys: readonly string[];
}): VerifiedHosts {
  const findings: HostFinding[] = [...findMissing(stateFolder, folders, hosts), ...findMisplaced(folders)].map(
    (finding) => ({ tenant: '*', ...finding }),
  );
  let records = 0;
  let chains = 0;
  const uncompared: string[] = [];
  for (const { audit, auditPath } of folders) {
    if (audit === undefined) continue;
    const heads = hosts.find((known) => isSame(audit, known))?.heads;
    if (heads === undefined) uncompared.push(audit.host);
    for (const chain of withRemoved(audit, heads ?? new Map())) {
      const verified = verifyFolder(chain, sealKeys, heads?.get(chain.tenant) ?? []);
      records += verified.records;
      chains += 1;
      const { host, tenant } = chain;
      for (const { where, ...finding } of verified.findings)
        findings.push({ host, tenant, where: where || join(auditPath, `t-${tenant}`), ...finding });
    }
  }
  return { findings, records, chains, uncompared };
}

function findMissing(stateFolder: string, folders: readonly HostFolder[], hosts: readonly KnownHost[]) {
  const missing = (host: string, where: string, message: string) => ({
    type: 'missing' as const,
    host,
    where,
    message,
  });
  const all = join(stateFolder, 'hosts');
  // A removal of everything must not pass as a machine without audits.
  if (folders.length === 0 && hosts.length === 0) return [missing('*', all, 'no host has its audit here')];
  const isThere = (known: KnownHost) => folders.some(({ audit }) => audit !== undefined && isSame(audit, known));
  const gone = hosts.filter((known) => !isThere(known));
  const folderOf = (host: string) => folders.find((folder) => isFolderOf(folder, host))?.auditPath ?? all;
  const unnamed = folders.filter(
    (folder) => folder.audit === undefined && !gone.some(({ host }) => isFolderOf(folder, host)),
  );
  return [
    ...gone.map(({ host }) => missing(host, folderOf(host), 'the audit of this host is missing')),
    // Each worker begins one when it starts.
    ...unnamed.map(({ ownId, name, auditPath }) => missing(ownId ?? name, auditPath, 'the audit is missing')),
  ];
}

const isSame = (one: { namespace: string; host: string }, other: { namespace: string; host: string }) =>
  one.namespace === other.namespace && one.host === other.host;

/** Returns the chains of a host, including those with only a head. */
function withRemoved({ namespace, host, chains }: HostAudit, heads: KnownHost['heads']): AuditFolder[] {
  const removed = [...heads.keys()].filter((tenant) => !chains.some((chain) => chain.tenant === tenant));
  return [...chains, ...removed.map((tenant) => ({ namespace, host, tenant, segments: [] }))];
}
