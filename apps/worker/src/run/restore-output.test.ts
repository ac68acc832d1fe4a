import { createHostMailbox, type Entry } from '@shellfleet/mailbox';
import { encodeStoredChunk, type StoredChunk, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { CleanOutput } from '../output/clean-output.ts';
import type { OverflowPiece } from '../output/output-queue.ts';
import { AttachedReader } from './attached-reader.ts';
import { restoreOutput } from './restore-output.ts';

const entry = { id: '01ENTRY', startedAt: 1_000 } as Entry;
const texts = { maxBytes: 100_000, maxLines: 10_000, keep: 'head-tail', encoding: 'utf8' } as const;
const createClean = () => new CleanOutput({ streamBytes: 2_500, texts });

/** The session's stream in memory, read as Redis reads it: exclusive of `after`, at most `count` at a time. */
function streamOf(events: { type: string; command: string; data?: Uint8Array }[]) {
  const stored = events.map(({ type, command, data }, index) => {
    const fields = ['type', type, 'command', command, ...(data === undefined ? [] : ['data', data])];
    return [Buffer.from(`${1_000 + index}-0`), fields.map((field) => Buffer.from(field as Uint8Array))] as const;
  });
  const reads: string[] = [];
  const redis = {
    async xrangeBuffer(_key: string, after: string, _to: string, _count: string, count: number) {
      reads.push(after);
      const from = Number.parseInt(after.slice(1), 10);
      return stored.filter(([id]) => Number.parseInt(id.toString(), 10) > from).slice(0, count);
    },
  };
  const owner = { redis: redis as unknown as Redis, keys: sessionKeys('ns', 't', 's'), fence: 1, host: 'h' };
  return { mailbox: createHostMailbox(owner, { signal: new AbortController().signal, onFenced() {} }), reads };
}

const logOf = (pieces: OverflowPiece[]) => ({
  append: async () => {},
  async *restore() {
    yield* pieces;
  },
});

describe('a restored output chain', () => {
  test('continues like the chain that stored the output', async () => {
    const before = createClean();
    const stored: StoredChunk[] = [];
    const overflow: OverflowPiece[] = [];
    // The 300 chunks are more than one page of the stream. The last ones are over its budget, so they go into the log.
    for (let line = 0; line < 300; line += 1) {
      before.push('stdout', before.received.stdout, Buffer.from(`line ${line}\n`));
      const released = before.release();
      stored.push(...released.chunks);
      overflow.push(...released.overflow);
    }
    expect(overflow.length).toBeGreaterThan(0);
    const foreign = { type: 'command.output', command: '01OTHER', data: encodeStoredChunk({ ...stored[0]! }) };
    const events = stored.flatMap((output, index) => [
      ...(index % 50 === 0 ? [foreign, { type: 'command.started', command: entry.id }] : []),
      { type: 'command.output', command: entry.id, data: encodeStoredChunk(output) },
    ]);
    const { mailbox, reads } = streamOf(events);
    const after = createClean();
    await restoreOutput(after, entry, mailbox, logOf(overflow));
    expect(reads.length).toBeGreaterThan(1);
    expect(reads[0]).toBe('(999');
    expect(after.received).toEqual(before.received);
    for (const chain of [before, after]) {
      chain.push('stdout', chain.received.stdout, Buffer.from('the end\n'));
      chain.end();
    }
    expect(after.release()).toEqual(before.release());
    expect(after.closingChunks()).toEqual(before.closingChunks());
    expect(after.texts()).toEqual(before.texts());
  });

  test('begins at 0 when nothing is stored', async () => {
    const clean = createClean();
    const { mailbox } = streamOf([]);
    await restoreOutput(clean, { ...entry, startedAt: 0 }, mailbox, logOf([]));
    expect(clean.received).toEqual({ stdout: 0, stderr: 0 });
  });

  test('counts the log as unread until the attached reader reports', async () => {
    const reader = new AttachedReader({ stallMs: 60_000, reachRedis: async () => {} });
    const data = Buffer.alloc(5 << 20, '.');
    const rest = { rawFrom: 0, rawTo: data.byteLength, bytesBefore: 0, newlinesBefore: 0, redactions: {} };
    const { mailbox } = streamOf([]);
    const log = logOf([{ stream: 'stdout', data, ...rest }]);
    await restoreOutput(createClean(), { ...entry, startedAt: 0 }, mailbox, log, reader);
    expect(reader.holdsBack).toBe(true);
    reader.seen({ stdout: data.byteLength, stderr: 0 });
    expect(reader.holdsBack).toBe(false);
    reader.close();
  });
});
