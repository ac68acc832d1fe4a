import { type AuditEvent, type AuditHead, ShellfleetError } from '@shellfleet/protocol';
import type { Logger } from '../log/logger.ts';
import type { Audit } from './audit.ts';

// AUDIT-1. A recorded event is stored before its caller continues, with all events that were noted before it.
// AUDIT-2. A noted event is described and written at most FLUSH_MS later, so no command waits for a disk or for Redis.
//     When many events wait, they are written sooner: each keeps its entry and its Result in memory, and objects that
//     survive two collections of young garbage cost far more to collect.

const FLUSH_MS = 500;
const FLUSH_AT = 96;
/** Most events that wait in memory while the store takes nothing. */
export const MOST_NOTED = 10_000;

/** Where the records of one tenant are stored. */
export interface TenantChain {
  readonly head: AuditHead;
  /** Number of noted events that failed writes have left for the next one. */
  readonly waiting: number;
  /** Counts noted events that are not written. The next record tells their number. */
  lose(count: number): void;
  /**
   * Writes noted events in an order that survives this process, then recorded ones so that they survive all that the
   * store promises to survive. Rejects unless all of them are written.
   */
  write(noted: readonly AuditEvent[], recorded: readonly AuditEvent[]): Promise<void>;
  /** Ends the chain, if its store tells ended chains from interrupted ones. */
  close?(): Promise<void>;
}

export interface ChainedAuditOptions {
  stateDirectoryId: string | undefined;
  /** Whether events that are only noted are written. */
  noted: boolean;
  logger: Logger;
  chainOf(tenant: string): TenantChain;
}

interface TenantAudit {
  chain: TenantChain;
  noted: (() => AuditEvent)[];
  /** Settles when the last recorded event is stored or has failed. */
  recording: Promise<void>;
}

/** Writes the events of each tenant to its chain, in batches. */
export class ChainedAudit implements Audit {
  readonly #options: ChainedAuditOptions;
  readonly #tenants = new Map<string, TenantAudit>();
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  #flushing: Promise<unknown> | undefined;
  #isFailing = false;
  #isClosing = false;

  constructor(options: ChainedAuditOptions) {
    this.#options = options;
  }

  get stateDirectoryId(): string | undefined {
    return this.#options.stateDirectoryId;
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
      await this.#flush(of, [event]);
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
    if (of.noted.length >= MOST_NOTED) of.chain.lose(1);
    else of.noted.push(describe);
    this.#flushLater();
    if (of.noted.length >= FLUSH_AT && this.#flushing === undefined)
      this.#soon ??= setImmediate(() => this.#flushAll());
  }

  /** Lists the head of this tenant, also before its first event. */
  open(tenant: string): void {
    this.#of(tenant);
  }

  heads(): ReadonlyMap<string, AuditHead> {
    return new Map([...this.#tenants].map(([tenant, { chain }]) => [tenant, chain.head]));
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#flushAll();
    while (this.#flushing !== undefined) await this.#flushing;
    await Promise.allSettled([...this.#tenants.values()].map(({ chain }) => chain.close?.()));
  }

  #flushLater(): void {
    this.#timer ??= setTimeout(() => this.#flushAll(), FLUSH_MS);
  }

  #flushAll(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#soon);
    this.#timer = undefined;
    this.#soon = undefined;
    const writing = [...this.#tenants.values()].filter(({ noted, chain }) => noted.length > 0 || chain.waiting > 0);
    if (writing.length === 0) return;
    const flushing = Promise.allSettled([this.#flushing, ...writing.map((of) => this.#flush(of, []))]).then(() => {
      if (this.#flushing === flushing) this.#flushing = undefined;
    });
    this.#flushing = flushing;
  }

  async #flush(of: TenantAudit, recorded: readonly AuditEvent[]): Promise<void> {
    const noted = of.noted.splice(0).map((describe) => describe());
    try {
      await of.chain.write(noted, recorded);
      this.#isFailing = false;
    } catch (err) {
      if (!this.#isFailing) this.#options.logger.error({ err }, 'audit.write-failed');
      this.#isFailing = true;
      if (of.chain.waiting > 0 && !this.#isClosing) this.#flushLater();
      throw err;
    }
  }

  #of(tenant: string): TenantAudit {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const of = { chain: this.#options.chainOf(tenant), noted: [], recording: Promise.resolve() };
    this.#tenants.set(tenant, of);
    return of;
  }
}
