import type { StoredEvent } from '@shellfleet/mailbox';
import { parseOrThrow, type SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Feeds } from '../connection/feeds.ts';
import { SharedReads } from './shared-reads.ts';

export interface StreamContext {
  readonly redis: Redis;
  readonly feeds: Feeds;
}

export interface Position {
  after: string | undefined;
  signal?: AbortSignal | undefined;
  follow?: boolean | undefined;
  text?: boolean | undefined;
}

const PAGE_BYTES = 2_097_152;
const FEWEST_ENTRIES = 16;
const MOST_ENTRIES = 1_024;

const cursorSchema = z
  .string('must be a string')
  .regex(/^\d{1,16}-\d{1,16}$/, 'must be the id of a chunk or an event (<ms>-<number>)');

export function parseCursor(after: unknown): string | undefined {
  return parseOrThrow(z.object({ after: cursorSchema.optional() }), { after }, 'COMMAND_INVALID', 'The position').after;
}

export function isBefore(a: string, b: string): boolean {
  const [aMs = 0, aSeq = 0] = a.split('-').map(Number);
  const [bMs = 0, bSeq = 0] = b.split('-').map(Number);
  return aMs === bMs ? aSeq < bSeq : aMs < bMs;
}

/** Reads a session's stream in pages of about the same size in bytes. */
export class StreamReader {
  readonly #reads: SharedReads;
  readonly #keys: SessionKeys;
  #from: string;
  #count = FEWEST_ENTRIES;

  /** Creates a reader that begins at the id `from`, or after the id if `from` begins with `(`. */
  constructor(redis: Redis, keys: SessionKeys, from: string) {
    this.#reads = SharedReads.of(redis);
    this.#keys = keys;
    this.#from = from;
  }

  /** Returns the next page. The page is empty when there are no more events now. */
  async page(): Promise<StoredEvent[]> {
    const entries = await this.#reads.page(this.#keys, this.#from, this.#count);
    const last = entries.at(-1);
    if (last === undefined) return entries;
    this.#from = `(${last.id}`;
    const bytes = entries.reduce((total, entry) => total + entry.data.byteLength, 0);
    const fitting = Math.floor(PAGE_BYTES / Math.max(1, bytes / entries.length));
    const count = Math.min(MOST_ENTRIES, Math.max(FEWEST_ENTRIES, fitting));
    // Readers whose pages had slightly other events ask for the same pages, and so share them.
    this.#count = 2 ** Math.floor(Math.log2(count));
    return entries;
  }
}
