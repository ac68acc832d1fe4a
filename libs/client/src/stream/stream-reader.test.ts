import { readStream, type StoredEvent } from '@shellfleet/mailbox';
import { sessionKeys } from '@shellfleet/protocol';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { StreamReader } from './stream-reader.ts';

vi.mock(import('@shellfleet/mailbox'), async (original) => ({ ...(await original()), readStream: vi.fn() }));
afterEach(() => void vi.resetAllMocks());

const keysOf = (session: string) => sessionKeys('ns', 'tenant', session);
const keys = keysOf('s');
const entries = (count: number, bytes: number): StoredEvent[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `1-${index}`,
    type: 'command.output',
    entryId: 'e',
    data: Buffer.alloc(bytes),
  }));

describe('stream reader', () => {
  test('reads at most 8 pages at once for a thousand sessions of one connection', async () => {
    let [reading, most] = [0, 0];
    vi.mocked(readStream).mockImplementation(async () => {
      most = Math.max(most, ++reading);
      await new Promise(setImmediate);
      reading -= 1;
      return entries(1, 10);
    });
    const redis = {} as never;
    const pages = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => new StreamReader(redis, keysOf(`s${index}`), '0-0').page()),
    );
    expect(pages.map((page) => page.length)).toEqual(Array(1_000).fill(1));
    expect(most).toBe(8);
  });

  test('reads a page at most twice for a thousand readers of one session', async () => {
    let stored = 1;
    const reads: Promise<StoredEvent[]>[] = [];
    vi.mocked(readStream).mockImplementation(() => {
      const reading = new Promise<void>(setImmediate).then(() => entries(stored, 10));
      reads.push(reading);
      return reading;
    });
    const redis = {} as never;
    const read = () => new StreamReader(redis, keys, '0-0').page();
    const first = read();
    // What is added now was there when the others asked.
    stored = 2;
    const others = await Promise.all(Array.from({ length: 999 }, read));
    expect(new Set([await first, ...others]).size).toBe(2);
    expect(others[0]).toHaveLength(2);
    expect(reads).toHaveLength(2);
  });

  test('shares a whole page with later readers, as long as one holds it', async () => {
    vi.mocked(readStream).mockImplementation(async (_redis, _keys, _from, count) => entries(count, 10));
    const redis = {} as never;
    const held = await new StreamReader(redis, keys, '0-0').page();
    expect(await new StreamReader(redis, keys, '0-0').page()).toBe(held);
    vi.mocked(readStream).mockImplementation(async () => entries(3, 10));
    const part = await new StreamReader(redis, keys, '(1-0').page();
    expect(await new StreamReader(redis, keys, '(1-0').page()).not.toBe(part);
  });

  test('reads a small page first, and later pages of about the same size in bytes', async () => {
    const counts: number[] = [];
    vi.mocked(readStream).mockImplementation(async (_redis, _keys, _from, count) => {
      counts.push(count);
      return entries(count, counts.length < 3 ? 65_536 : 4_096);
    });
    const reader = new StreamReader({} as never, keys, '0-0');
    for (let page = 0; page < 4; page += 1) await reader.page();
    expect(counts).toEqual([16, 32, 32, 512]);
  });
});
