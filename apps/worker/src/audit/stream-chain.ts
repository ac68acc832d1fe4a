import { appendAuditRecords } from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  type AuditChainName,
  type AuditEvent,
  type AuditHead,
  auditHeadSchema,
  tryJson,
} from '@shellfleet/protocol';
import { type AuditKey, CHAIN_START, type Sealer, sealPlace, toAuditLine } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import { MOST_NOTED, type TenantChain } from './chained-audit.ts';

// The records of one tenant by this process, in the fleet's stream in Redis.
//
// STREAM-1. Records are added only behind the record on which their codes depend: Redis compares the head of the chain.
// STREAM-2. Redis may have added the records of a call that failed. The next call finds this out from the head, so
//     noted events are neither lost nor written twice.
// STREAM-3. If Redis has lost records, the chain goes on behind the last one that it may have had, and reports the
//     loss.

/** About how many bytes of records one entry of the stream has. */
const ENTRY_BYTES = 256 * 1024;

export interface StreamChainDeps {
  redis: Redis;
  namespace: string;
  chain: AuditChainName;
  key: AuditKey;
  sealer: Pick<Sealer, 'seal'>;
  logger: Logger;
  /** Receives the size of the whole stream after each call. */
  onBytes(bytes: number): void;
}

/** Records that were sent, and may be in Redis. */
interface Batch {
  text: string;
  /** Time of its records, ms. */
  at: number;
  first: number;
  head: AuditHead;
  /** Number of the noted events in it, the first ones that wait. */
  noted: number;
  /** Number of lost events that it tells. */
  lost: number;
  hasRecorded: boolean;
}

export class StreamChain implements TenantChain {
  readonly #deps: StreamChainDeps;
  #head: AuditHead = CHAIN_START;
  /** Text of the head in Redis, as far as this process knows, or empty. */
  #stored = '';
  /** Noted events that are not known to be in Redis. */
  #noted: AuditEvent[] = [];
  #lost = 0;
  #rewound: AuditEvent | undefined;
  /** Batches of calls that failed since the last one that succeeded. Redis may have added one of them. */
  #unknown: Batch[] = [];
  #writing: Promise<unknown> = Promise.resolve();

  constructor(deps: StreamChainDeps) {
    this.#deps = deps;
  }

  get head(): AuditHead {
    return this.#head;
  }

  get waiting(): number {
    return this.#noted.length;
  }

  lose(count: number): void {
    this.#lost += count;
  }

  write(noted: readonly AuditEvent[], recorded: readonly AuditEvent[]): Promise<void> {
    const room = Math.max(0, MOST_NOTED - this.#noted.length);
    this.#noted.push(...noted.slice(0, room));
    this.lose(Math.max(0, noted.length - room));
    const written = this.#writing.then(() => this.#write(recorded));
    this.#writing = written.catch(() => {});
    return written;
  }

  async close(): Promise<void> {
    if (this.#stored !== '' || this.#noted.length > 0) await this.write([], [{ type: 'closed' }]);
  }

  async #write(recorded: readonly AuditEvent[]): Promise<void> {
    let left = recorded;
    while (this.#noted.length > 0 || left.length > 0) {
      const batch = this.#prepare(left);
      if ((await this.#add(batch)) && batch.hasRecorded) left = [];
    }
  }

  /** Makes the next records, up to about ENTRY_BYTES of noted events, and all recorded ones if there is no other. */
  #prepare(recorded: readonly AuditEvent[]): Batch {
    const now = new Date();
    const at = now.toISOString();
    const lost = this.#lost;
    const batch: Batch = {
      ...{ text: '', at: +now, first: this.#head.n + 1, head: this.#head },
      ...{ noted: 0, lost, hasRecorded: false },
    };
    const add = (event: AuditEvent) => {
      const { line, head } = toAuditLine(event, batch.head, at, this.#deps.key);
      batch.text += line;
      batch.head = head;
    };
    if (this.#rewound !== undefined) add(this.#rewound);
    if (lost > 0) add({ type: 'lost', count: lost });
    for (const event of this.#noted) {
      if (batch.text.length >= ENTRY_BYTES) return batch;
      add(event);
      batch.noted += 1;
    }
    for (const event of recorded) add(event);
    batch.hasRecorded = recorded.length > 0;
    return batch;
  }

  /** Adds a batch to the stream. Returns false if the chain in Redis has another head, which the next batch follows. */
  async #add(batch: Batch): Promise<boolean> {
    const { redis, namespace, chain, sealer } = this.#deps;
    const { first, text } = batch;
    const sealed = sealer.seal(text, sealPlace('audit-records', { namespace }, { chain, first }));
    const before = this.#unknown;
    this.#unknown = [...before, batch];
    const heads = { expected: this.#stored, head: storedHeadOf(batch) };
    const added = await appendAuditRecords(redis, namespace, { chain, first, sealed }, heads);
    this.#unknown = before;
    if (added.type === 'added') {
      this.#settle(batch);
      this.#deps.onBytes(added.bytes);
      return true;
    }
    this.#follow(added.head);
    return false;
  }

  #settle(batch: Batch): void {
    const { head, noted, lost } = batch;
    this.#head = head;
    this.#stored = storedHeadOf(batch);
    this.#noted.splice(0, noted);
    this.#lost -= lost;
    this.#rewound = undefined;
    this.#unknown = [];
  }

  /** Continues behind the head in Redis: that of a call whose reply was lost, or an older one. */
  #follow(found: string): void {
    const added = this.#unknown.find((batch) => storedHeadOf(batch) === found);
    if (added !== undefined) {
      this.#settle(added);
      return;
    }
    const newest = this.#unknown.at(-1)?.head ?? this.#head;
    this.#head = newest;
    this.#stored = found;
    this.#unknown = [];
    const { data } = auditHeadSchema.safeParse(tryJson(found));
    this.#rewound = { type: 'rewound', found: data?.n ?? 0, through: newest.n };
    this.#deps.logger.error({ [ATTRIBUTES.tenant]: this.#deps.chain.tenant, anchored: newest.n }, 'audit.cut');
  }
}

const storedHeadOf = ({ head, at }: Batch) => JSON.stringify({ ...head, at });
