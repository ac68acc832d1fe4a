import { mkdtemp, readdir, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sessionKeys } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createOverflowLogs, type OverflowLogs } from './overflow-logs.ts';
import { sweepLogs } from './sweep-logs.ts';

const HOUR_MS = 3_600_000;
const keys = sessionKeys('ns', 'acme', 'agent-42');
let directory: string;
let overflowLogs: OverflowLogs;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'overflow-log-'));
  overflowLogs = createOverflowLogs(directory, { commandBytes: 64 << 20, hostBytes: 1 << 30, maxAgeMs: 86_400_000 });
});
afterEach(() => rm(directory, { recursive: true }));

async function write(entryId: string, ageMs: number, now = Date.now()): Promise<void> {
  const data = Buffer.alloc(1000, 'x');
  const counters = { bytesBefore: 0, newlinesBefore: 0, redactions: {} };
  const piece = { stream: 'stdout', rawFrom: 0, rawTo: 1000, ...counters, data } as const;
  await overflowLogs.ofCommand(keys, entryId, 10).append([piece]);
  const name = (await readdir(directory)).find((found) => found.endsWith(entryId)) ?? '';
  const at = new Date(now - ageMs);
  for (const path of [join(directory, name, 'stdout.0'), join(directory, name)]) await utimes(path, at, at);
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function left(): Promise<string[]> {
  return (await readdir(directory)).map((name) => name.slice(17)).sort();
}

describe('the overflow logs of a host', () => {
  test('have no file for a command that stays within its budget', async () => {
    const log = overflowLogs.ofCommand(keys, 'a', 10);
    await log.append([]);
    expect(await all(log.restore())).toEqual([]);
    expect(await left()).toEqual([]);
  });

  test('give the next worker process the output that was written', async () => {
    await write('a', 0);
    const pieces = await all(overflowLogs.ofCommand(keys, 'a', 10).restore());
    expect(pieces.map(({ rawFrom, rawTo }) => [rawFrom, rawTo])).toEqual([[0, 1000]]);
    expect(await all(overflowLogs.ofCommand(sessionKeys('ns', 'acme', 'Agent-42'), 'a', 10).restore())).toEqual([]);
  });

  test('are removed by age, then oldest first above the quota, never during a write', async () => {
    await write('a', 30 * HOUR_MS);
    await write('b', 3 * HOUR_MS);
    await write('c', 2 * HOUR_MS);
    await write('d', 0);
    await sweepLogs(directory, { retentionMs: 24 * HOUR_MS, quotaBytes: 1_000_000 });
    expect(await left()).toEqual(['b', 'c', 'd']);
    await sweepLogs(directory, { retentionMs: 24 * HOUR_MS, quotaBytes: 2_500 });
    expect(await left()).toEqual(['c', 'd']);
    await sweepLogs(directory, { retentionMs: 24 * HOUR_MS, quotaBytes: 0 });
    expect(await left()).toEqual(['d']);
  });

  test('count the age of a log from its last write, however old its directory is', async () => {
    await write('a', HOUR_MS);
    const name = (await readdir(directory)).find((found) => found.endsWith('a')) ?? '';
    const longAgo = new Date(Date.now() - 30 * HOUR_MS);
    await utimes(join(directory, name), longAgo, longAgo);
    await sweepLogs(directory, { retentionMs: 24 * HOUR_MS, quotaBytes: 1_000_000 });
    expect(await left()).toEqual(['a']);
  });

  test("remove a log of the retention's age, and the oldest above the quota", async () => {
    const now = Date.now();
    const retentionMs = 24 * HOUR_MS;
    await write('a', retentionMs, now);
    await write('b', retentionMs - 1, now);
    await write('c', 300_000, now);
    await write('d', 299_999, now);
    const sizes = await Promise.all((await readdir(directory)).map((name) => stat(join(directory, name, 'stdout.0'))));
    const bytesOfThree = 3 * (sizes[0]?.size ?? 0);
    await sweepLogs(directory, { retentionMs, quotaBytes: 1_000_000 }, now);
    expect(await left()).toEqual(['b', 'c', 'd']);
    await sweepLogs(directory, { retentionMs, quotaBytes: bytesOfThree }, now);
    expect(await left()).toEqual(['b', 'c', 'd']);
    await sweepLogs(directory, { retentionMs, quotaBytes: bytesOfThree - 1 }, now);
    expect(await left()).toEqual(['c', 'd']);
    // A log that was written to within five minutes may be in use.
    await sweepLogs(directory, { retentionMs, quotaBytes: 0 }, now);
    expect(await left()).toEqual(['d']);
  });
});
