import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditEvent, AuditHead } from '@shellfleet/protocol';
import { type AuditKey, CHAIN_START, parseAuditLine, toAuditLine } from '@shellfleet/sealing';

// The records of one tenant on this host, in separate files. The name of a file is the number of its first record.
//
// CHAIN-1. A record is written after the record on which its authentication code depends. After a failed write, the
//     files are read again.
// CHAIN-2. A file is only appended to. An incomplete last line stays, and the next record reports it.
// CHAIN-3. A file is removed as a whole, once all of it is older than the retention, and after a record of the removal.

const SEGMENT_BYTES = 16 * 1024 * 1024;
const DIGITS = 12;
/** Number of parts of the retention. A file holds the records of at most one part. */
const SEGMENTS = 24;

export interface AuditChainOptions {
  directory: string;
  key: AuditKey;
  /** All keys that may authenticate records of the chain, including `key`. */
  keys: readonly AuditKey[];
  retentionMs: number;
  segmentBytes?: number;
}

interface Segment {
  path: string;
  bytes: number;
  /** Times of the first and the newest record, ms. */
  firstAt: number;
  newestAt: number;
  last: number;
}

export class AuditChain {
  readonly #options: AuditChainOptions;
  #segments: Segment[] = [];
  #head: AuditHead = CHAIN_START;
  /** True when the last line is incomplete. */
  #isTorn = false;
  #isRead = false;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: AuditChainOptions) {
    this.#options = options;
  }

  get head(): AuditHead {
    return this.#head;
  }

  /** Reads earlier records. If they lack `anchored`, the head that Redis has, adds a record of the loss. */
  async open(anchored: AuditHead | undefined): Promise<'whole' | 'cut'> {
    const kept = await this.#read(anchored?.n);
    if (anchored === undefined || kept === anchored.mac || anchored.n < this.#firstOf()) return 'whole';
    await this.write([{ type: 'cut', anchored: anchored.n, found: this.#head.n }], 'synced');
    return 'cut';
  }

  /** Writes events, one call after another. Rejects unless all of them are written. */
  write(events: readonly AuditEvent[], how: 'synced' | 'written'): Promise<void> {
    const written = this.#writing.then(() => this.#write(events, how));
    this.#writing = written.catch(() => {});
    return written;
  }

  async #write(events: readonly AuditEvent[], how: 'synced' | 'written'): Promise<void> {
    if (!this.#isRead) await this.#read(undefined);
    const at = new Date();
    const expired = this.#segments.slice(0, -1).filter(({ newestAt }) => newestAt < +at - this.#options.retentionMs);
    const through = expired.at(-1)?.last;
    await this.#append(
      [
        ...(this.#isTorn ? [{ type: 'interrupted' } as const] : []),
        ...(through === undefined ? [] : [{ type: 'pruned', through } as const]),
        ...events,
      ],
      at,
      how,
    );
    for (const { path } of expired) await rm(path, { force: true });
    this.#segments = this.#segments.filter((segment) => !expired.includes(segment));
  }

  async #append(events: readonly AuditEvent[], at: Date, how: 'synced' | 'written'): Promise<void> {
    const { key } = this.#options;
    let head = this.#head;
    let text = this.#isTorn ? '\n' : '';
    const time = at.toISOString();
    for (const event of events) {
      const next = toAuditLine(event, head, time, key);
      head = next.head;
      text += next.line;
    }
    const segment = this.#segmentFor();
    try {
      await using file = await open(segment.path, 'a', 0o600);
      await file.appendFile(text);
      if (how === 'synced') await file.datasync();
    } catch (error) {
      // How much was written is unknown (CHAIN-1).
      this.#isRead = false;
      throw error;
    }
    Object.assign(segment, { bytes: segment.bytes + Buffer.byteLength(text), newestAt: +at, last: head.n });
    this.#head = head;
    this.#isTorn = false;
  }

  /** Returns the file for the next record. That is the newest file while its last line is incomplete. */
  #segmentFor(): Segment {
    const { directory, retentionMs, segmentBytes = SEGMENT_BYTES } = this.#options;
    const current = this.#segments.at(-1);
    const isFull = (of: Segment) => of.bytes >= segmentBytes || Date.now() - of.firstAt > retentionMs / SEGMENTS;
    if (current !== undefined && (this.#isTorn || !isFull(current))) return current;
    const name = `${String(this.#head.n + 1).padStart(DIGITS, '0')}.jsonl`;
    const segment = {
      path: join(directory, name),
      bytes: 0,
      firstAt: Date.now(),
      newestAt: Date.now(),
      last: this.#head.n,
    };
    this.#segments.push(segment);
    return segment;
  }

  #firstOf(): number {
    const name = this.#segments[0]?.path.split('/').at(-1) ?? '1';
    return Number.parseInt(name, 10);
  }

  /** Reads the files. Returns the authentication code of the record `n`. */
  async #read(n: number | undefined): Promise<string | undefined> {
    const { directory, keys } = this.#options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const names = (await readdir(directory)).filter((name) => name.endsWith('.jsonl')).sort();
    this.#segments = [];
    this.#head = CHAIN_START;
    this.#isTorn = false;
    let kept: string | undefined;
    for (const name of names) {
      const path = join(directory, name);
      const lines = (await readFile(path, 'utf8')).split('\n');
      const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, -1);
      const segment: Segment = { path, bytes, firstAt: 0, newestAt: 0, last: this.#head.n };
      for (const line of lines) {
        const parsed = parseAuditLine(line, keys);
        if (!parsed?.authentic) continue;
        const { record, mac } = parsed;
        this.#head = { n: record.n, mac };
        if (record.n === n) kept = mac;
        const newestAt = Date.parse(record.at);
        Object.assign(segment, { firstAt: segment.firstAt || newestAt, newestAt, last: record.n });
      }
      this.#isTorn = lines.at(-1) !== '' && bytes > 0;
      this.#segments.push(segment);
    }
    this.#isRead = true;
    return kept;
  }
}
