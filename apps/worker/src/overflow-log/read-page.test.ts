import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StreamName } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OverflowPiece } from '../output/output-queue.ts';
import { OverflowLog } from './overflow-log.ts';
import { readLogPage } from './read-page.ts';

let parent: string;
let directory: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'pages-'));
  directory = join(parent, 'log');
});
afterEach(() => rm(parent, { recursive: true }));

const openLog = (quotaBytes = 1_000_000) => OverflowLog.open({ directory, segmentBytes: 1_000, quotaBytes });

function piece(stream: StreamName, bytesBefore: number, text: string): OverflowPiece {
  const data = Buffer.from(text);
  const raw = { rawFrom: bytesBefore, rawTo: bytesBefore + data.length };
  return { stream, ...raw, bytesBefore, newlinesBefore: 0, redactions: {}, data };
}

/** Reads everything after `from`, page by page, as a client does. */
async function readAll(maxBytes: number, from: Record<StreamName, number>, streams: readonly StreamName[]) {
  const at = { ...from };
  let text = '';
  let missing = 0;
  for (;;) {
    const page = await readLogPage(directory, { streams, from: at, maxBytes });
    for (const { stream, offset, data } of page.pieces) {
      missing += offset - at[stream];
      at[stream] = offset + data.length;
      text += Buffer.from(data).toString();
    }
    if (!page.more) return { text, missing };
    expect(page.pieces.length).toBeGreaterThan(0);
  }
}

const BOTH: readonly StreamName[] = ['stdout', 'stderr'];

describe('a page of the overflow log', () => {
  test('has both streams in the order of writing, from any offset, at any size', async () => {
    const log = await openLog();
    let written = '';
    const at = { stdout: 100, stderr: 7 };
    for (let count = 0; count < 120; count += 1) {
      const stream = count % 5 === 4 ? 'stderr' : 'stdout';
      const text = `${stream === 'stdout' ? 'o' : 'e'}${count}-`.repeat(1 + (count % 13));
      await log.append([piece(stream, at[stream], text)]);
      at[stream] += text.length;
      written += text;
    }
    const begin = { stdout: 100, stderr: 7 };
    for (const maxBytes of [1, 50, 333, 5_000, 1_000_000])
      expect(await readAll(maxBytes, begin, BOTH)).toEqual({ text: written, missing: 0 });
    const stdout = (await readAll(400, begin, ['stdout'])).text;
    for (const skip of [1, 500, 1_234, 2_600, stdout.length])
      expect((await readAll(400, { stdout: 100 + skip, stderr: 7 }, ['stdout'])).text).toBe(stdout.slice(skip));
  });

  test('skips dropped output, which shows as a gap', async () => {
    const log = await openLog(5_000);
    for (let at = 0; at < 100; at += 1) await log.append([piece('stdout', at * 500, 'x'.repeat(500))]);
    const { text, missing } = await readAll(700, { stdout: 0, stderr: 0 }, BOTH);
    expect(text.length + missing).toBe(50_000);
    expect(missing).toBeGreaterThan(40_000);
    expect(
      await readLogPage(directory, { streams: BOTH, from: { stdout: 20_000, stderr: 0 }, maxBytes: 10 }),
    ).toMatchObject({
      more: true,
      pieces: [{ stream: 'stdout', offset: expect.any(Number) }],
    });
  });

  test('excludes an incomplete frame, and is empty for a missing log', async () => {
    const nothing = { pieces: [], more: false };
    expect(await readLogPage(directory, { streams: BOTH, from: { stdout: 0, stderr: 0 }, maxBytes: 10 })).toEqual(
      nothing,
    );
    const log = await openLog();
    await log.append([piece('stdout', 0, 'whole')]);
    await appendFile(join(directory, 'stdout.0'), Buffer.alloc(60, 1));
    expect((await readAll(100, { stdout: 0, stderr: 0 }, BOTH)).text).toBe('whole');
    expect(await readLogPage(directory, { streams: BOTH, from: { stdout: 5, stderr: 0 }, maxBytes: 10 })).toEqual(
      nothing,
    );
  });
});
