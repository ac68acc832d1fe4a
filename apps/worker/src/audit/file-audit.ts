import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ATTRIBUTES, type AuditEvent, type AuditHead, ShellfleetError } from '@shellfleet/protocol';
import { auditKeys } from '@shellfleet/sealing';
import type { Logger } from '../log/logger.ts';
import type { Audit } from './audit.ts';
import { AuditChain } from './audit-chain.ts';

// AUDIT-1. A recorded event is on disk before its caller continues, with all events that were noted before it.
// AUDIT-2. A noted event is described and written at most FLUSH_MS later, so no command waits for a disk. When many
//     events wait, they are written sooner: each keeps its entry and its Result in memory, and objects that survive two
//     collections of young garbage cost far more to collect.

const FLUSH_MS = 500;
const FLUSH_AT = 96;
/** Most events that wait in memory while the disk takes nothing. */
const MOST_NOTED = 10_000;

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

interface TenantAudit {
  chain: AuditChain;
  noted: (() => AuditEvent)[];
  lost: number;
  /** Settles when the last recorded event is on disk or has failed. */
  recording: Promise<void>;
}

/** Opens the audit of this host, and continues the chains of earlier processes. */
export async function openAudit(options: FileAuditOptions): Promise<Audit> {
  const { directory, namespace, hostId, anchored } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(join(directory, 'chain-of.json'), JSON.stringify({ namespace, host: hostId }), { mode: 0o600 });
  const audit = new FileAudit(options);
  const known = (await readdir(directory)).filter((name) => name.startsWith('t-')).map((name) => name.slice(2));
  for (const tenant of new Set([...known, ...anchored.keys()])) await audit.open(tenant, anchored.get(tenant));
  return audit;
}

class FileAudit implements Audit {
  readonly #options: FileAuditOptions;
  readonly #tenants = new Map<string, TenantAudit>();
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  #flushing: Promise<unknown> | undefined;
  #isFailing = false;

  constructor(options: FileAuditOptions) {
    this.#options = options;
  }

  get stateDirectoryId(): string {
    return this.#options.stateDirectoryId;
  }

  async open(tenant: string, anchored: AuditHead | undefined): Promise<void> {
    if ((await this.#of(tenant).chain.open(anchored)) === 'cut')
      this.#options.logger.error({ [ATTRIBUTES.tenant]: tenant, anchored: anchored?.n }, 'audit.cut');
  }

  record(tenant: string, event: AuditEvent): Promise<void> {
    const of = this.#of(tenant);
    const recording = this.#record(of, event);
    of.recording = recording;
    recording.catch(() => {});
    return recording;
  }

  async recorded(tenant: string): Promise<void> {
    await this.#of(tenant).recording;
  }

  async #record(of: TenantAudit, event: AuditEvent): Promise<void> {
    try {
      await this.#flush(of, [event], 'synced');
    } catch (cause) {
      throw new ShellfleetError(
        'AUDIT_UNAVAILABLE',
        'The audit of this host takes no records at present, so nothing that must be recorded is done.',
        {},
        { cause },
      );
    }
  }

  note(tenant: string, describe: () => AuditEvent): void {
    if (!this.#options.noted) return;
    const of = this.#of(tenant);
    if (of.noted.length >= MOST_NOTED) of.lost += 1;
    else of.noted.push(describe);
    this.#timer ??= setTimeout(() => this.#flushAll(), FLUSH_MS);
    if (of.noted.length >= FLUSH_AT && this.#flushing === undefined)
      this.#soon ??= setImmediate(() => this.#flushAll());
  }

  heads(): ReadonlyMap<string, AuditHead> {
    return new Map([...this.#tenants].map(([tenant, { chain }]) => [tenant, chain.head]));
  }

  async close(): Promise<void> {
    this.#flushAll();
    while (this.#flushing !== undefined) await this.#flushing;
  }

  #flushAll(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#soon);
    this.#timer = undefined;
    this.#soon = undefined;
    const writing = [...this.#tenants.values()].filter(({ noted }) => noted.length > 0);
    if (writing.length === 0) return;
    const flushing = Promise.allSettled([this.#flushing, ...writing.map((of) => this.#flush(of, [], 'written'))]).then(
      () => {
        if (this.#flushing === flushing) this.#flushing = undefined;
      },
    );
    this.#flushing = flushing;
  }

  async #flush(of: TenantAudit, events: readonly AuditEvent[], how: 'synced' | 'written'): Promise<void> {
    const noted = of.noted.splice(0);
    const { lost } = of;
    of.lost = 0;
    const missed = lost === 0 ? [] : [{ type: 'lost', count: lost } as const];
    try {
      await of.chain.write([...missed, ...noted.map((describe) => describe()), ...events], how);
      this.#isFailing = false;
    } catch (err) {
      of.lost += lost + noted.length;
      if (!this.#isFailing) this.#options.logger.error({ err }, 'audit.write-failed');
      this.#isFailing = true;
      throw err;
    }
  }

  #of(tenant: string): TenantAudit {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const { directory, namespace, hostId, sealKeys, retentionMs } = this.#options;
    const keys = auditKeys(sealKeys, { namespace, host: hostId, tenant });
    const [key] = keys;
    if (key === undefined) throw new Error('No seal key');
    const chain = new AuditChain({ directory: join(directory, `t-${tenant}`), key, keys, retentionMs });
    const of = { chain, noted: [], lost: 0, recording: Promise.resolve() };
    this.#tenants.set(tenant, of);
    return of;
  }
}
