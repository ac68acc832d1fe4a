import { readStream, type StreamEntry } from '@shellfleet/mailbox';
import { parseOrThrow, type SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import pLimit, { type LimitFunction } from 'p-limit';
import { z } from 'zod';
import type { Feeds } from '../connection/feeds.ts';

/** The part of a view that is needed to read a session's stream. */
export interface StreamContext {
  readonly redis: Redis;
  readonly feeds: Feeds;
}

/** The start position of a reader, and the conditions of its end. */
export interface Position {
  after: string | undefined;
  signal?: AbortSignal | undefined;
  follow?: boolean | undefined;
}

const PAGE_BYTES = 2_097_152;
const FEWEST_ENTRIES = 16;
const MOST_ENTRIES = 1_000;

/**
 * Replies arrive one after the other, each within the deadline of its call. With a thousand readers of one process the last of a thousand
 * pages would be late, its connection would end, and all of them would be read again, for ever.
 */
const PAGES_AT_ONCE = 8;
const limits = new WeakMap<Redis, LimitFunction>();

const cursorSchema = z
  .string('must be a string')
  .regex(/^\d{1,16}-\d{1,16}$/, 'must be the id of a chunk or an event (<ms>-<number>)');

export function parseCursor(after: unknown): string | undefined {
  return parseOrThrow(z.object({ after: cursorSchema.optional() }), { after }, 'COMMAND_INVALID', 'The position').after;
}

/** Compares two stream ids. */
export function isBefore(a: string, b: string): boolean {
  const [aMs = 0, aSeq = 0] = a.split('-').map(Number);
  const [bMs = 0, bSeq = 0] = b.split('-').map(Number);
  return aMs === bMs ? aSeq < bSeq : aMs < bMs;
}

/** Reads a session's stream in pages of about the same size in bytes, regardless of the size of its entries. */
export class StreamReader {
  readonly #redis: Redis;
  readonly #keys: SessionKeys;
  readonly #limit: LimitFunction;
  #from: string;
  #count = FEWEST_ENTRIES;

  /** `from`: an id to begin at, or `(` and an id to begin after. */
  constructor(redis: Redis, keys: SessionKeys, from: string) {
    this.#redis = redis;
    this.#keys = keys;
    this.#from = from;
    this.#limit = limits.get(redis) ?? pLimit(PAGES_AT_ONCE);
    limits.set(redis, this.#limit);
  }

  /** The next page; empty when there are no more entries now. */
  async page(): Promise<StreamEntry[]> {
    const entries = await this.#limit(() => readStream(this.#redis, this.#keys, this.#from, this.#count));
    const last = entries.at(-1);
    if (last === undefined) return entries;
    this.#from = `(${last.id}`;
    const bytes = entries.reduce((total, entry) => total + entry.data.byteLength, 0);
    const fitting = Math.floor(PAGE_BYTES / Math.max(1, bytes / entries.length));
    this.#count = Math.min(MOST_ENTRIES, Math.max(FEWEST_ENTRIES, fitting));
    return entries;
  }
}
