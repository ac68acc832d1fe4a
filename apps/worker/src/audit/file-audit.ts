import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ATTRIBUTES, type AuditEvent, type AuditHead } from '@shellfleet/protocol';
import { auditKeys } from '@shellfleet/sealing';
import type { Logger } from '../log/logger.ts';
import type { Audit } from './audit.ts';
import { AuditChain } from './audit-chain.ts';
import { ChainedAudit, type TenantChain } from './chained-audit.ts';

// The audit of a host on its own disk.

export interface FileAuditOptions {
  directory: string;
  namespace: string;
  hostId: string;
  stateDirectoryId: string;
  sealKeys: readonly string[];
  retentionMs: number;
  /** Whether events that are only noted are written. */
  noted: boolean;
  anchored: ReadonlyMap<string, AuditHead>;
  logger: Logger;
}

/** Opens the audit of this host, and continues the chains of earlier processes. */
export async function openAudit(options: FileAuditOptions): Promise<Audit> {
  const { directory, namespace, hostId, anchored, logger } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(join(directory, 'chain-of.json'), JSON.stringify({ namespace, host: hostId }), { mode: 0o600 });
  const known = (await readdir(directory)).filter((name) => name.startsWith('t-')).map((name) => name.slice(2));
  const chains = new Map<string, FileChain>();
  const chainOf = (tenant: string) => {
    const chain = chains.get(tenant) ?? openChain(options, tenant);
    chains.set(tenant, chain);
    return chain;
  };
  const audit = new ChainedAudit({ ...options, chainOf });
  for (const tenant of new Set([...known, ...anchored.keys()])) {
    audit.open(tenant);
    if ((await chainOf(tenant).files.open(anchored.get(tenant))) === 'cut')
      logger.error({ [ATTRIBUTES.tenant]: tenant, anchored: anchored.get(tenant)?.n }, 'audit.cut');
  }
  return audit;
}

function openChain({ directory, namespace, hostId, sealKeys, retentionMs }: FileAuditOptions, tenant: string) {
  const keys = auditKeys(sealKeys, { namespace, host: hostId, tenant });
  const [key] = keys;
  if (key === undefined) throw new Error('No seal key');
  return new FileChain(new AuditChain({ directory: join(directory, `t-${tenant}`), key, keys, retentionMs }));
}

/** Counts the noted events that the disk does not take. Recorded events are synced. */
class FileChain implements TenantChain {
  readonly waiting = 0;
  readonly files: AuditChain;
  #lost = 0;

  constructor(files: AuditChain) {
    this.files = files;
  }

  get head(): AuditHead {
    return this.files.head;
  }

  lose(count: number): void {
    this.#lost += count;
  }

  async write(noted: readonly AuditEvent[], recorded: readonly AuditEvent[]): Promise<void> {
    const lost = this.#lost;
    this.#lost = 0;
    const missed = lost === 0 ? [] : [{ type: 'lost', count: lost } as const];
    try {
      await this.files.write([...missed, ...noted, ...recorded], recorded.length > 0 ? 'synced' : 'written');
    } catch (error) {
      this.#lost += lost + noted.length;
      throw error;
    }
  }
}
