import { appendFile, mkdtemp, readdir, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CleanOutput } from '../output/clean-output.ts';
import type { OverflowPiece } from '../output/output-queue.ts';
import { encodeOverflowFrame } from './overflow-frame.ts';
import { OverflowLog } from './overflow-log.ts';

let parent: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'overflow-'));
});
afterEach(() => rm(parent, { recursive: true }));

function openLog(more: { segmentBytes?: number; quotaBytes?: number } = {}) {
  return OverflowLog.open({ directory: join(parent, 'log'), segmentBytes: 1000, quotaBytes: 1_000_000, ...more });
}

async function all(log: OverflowLog): Promise<OverflowPiece[]> {
  const pieces: OverflowPiece[] = [];
  for await (const found of log.read()) pieces.push(found);
  return pieces;
}

function piece(stream: 'stdout' | 'stderr', rawFrom: number, text: string): OverflowPiece {
  const data = Buffer.from(text);
  return {
    stream,
    rawFrom,
    rawTo: rawFrom + data.length,
    bytesBefore: rawFrom,
    newlinesBefore: 0,
    redactions: {},
    data,
  };
}

describe('the overflow log of a command', () => {
  test('OVERFLOW-LOG-3: a new process reads both streams in the order of writing', async () => {
    const pieces = [piece('stdout', 10, 'one'), piece('stderr', 0, 'two'), piece('stdout', 13, 'three')];
    const log = await openLog();
    await log.append(pieces.slice(0, 2));
    await log.append(pieces.slice(2));
    const again = await openLog();
    expect(await all(again)).toEqual(pieces);
    expect(again.stored).toEqual({ stdout: 18, stderr: 3 });
  });

  test('OVERFLOW-LOG-1: an incomplete last frame is cut off and written again', async () => {
    const first = piece('stdout', 0, 'first');
    const second = piece('stdout', 5, 'second');
    const frame = Buffer.concat(encodeOverflowFrame({ ...second, order: 1 }));
    for (let bytes = 0; bytes < frame.length; bytes += 1) {
      const log = await openLog();
      await log.append([first]);
      await appendFile(join(parent, 'log', 'stdout.0'), frame.subarray(0, bytes));
      const adopted = await openLog();
      expect(adopted.stored.stdout).toBe(5);
      await adopted.append([second]);
      expect(await all(adopted)).toEqual([first, second]);
      await adopted.remove();
    }
  });

  test('OVERFLOW-LOG-2: beyond its quota, each stream keeps its first and its last segment', async () => {
    const log = await openLog({ quotaBytes: 5000 });
    await log.append([piece('stderr', 0, 'rare')]);
    for (let at = 0; at < 100; at += 1) await log.append([piece('stdout', at * 500, 'x'.repeat(500))]);
    expect((await readdir(join(parent, 'log'))).length).toBeLessThanOrEqual(6);
    const pieces = await all(await openLog());
    const stdout = pieces.filter(({ stream }) => stream === 'stdout');
    expect(pieces[0]?.data.toString()).toBe('rare');
    expect(stdout[0]?.rawFrom).toBe(0);
    expect(stdout.at(-1)?.rawTo).toBe(50_000);
    expect(stdout.filter(({ rawFrom }) => rawFrom >= 49_000).map(({ rawFrom }) => rawFrom)).toEqual([49_000, 49_500]);
  });

  test('the Result is the same after an adoption from the stream and the log', async () => {
    const texts = { maxBytes: 1000, maxLines: 50, keep: 'head-tail', encoding: 'utf8' } as const;
    const options = { streamBytes: 500, texts };
    const whole = new CleanOutput(options);
    const before = new CleanOutput(options);
    const after = new CleanOutput(options);
    const log = await openLog({ quotaBytes: 4000 });
    const entries = [];
    for (let at = 0; at < 400; at += 1) {
      for (const output of at < 300 ? [whole, before] : [whole]) {
        output.push(
          at % 50 === 0 ? 'stderr' : 'stdout',
          output.received[at % 50 === 0 ? 'stderr' : 'stdout'],
          Buffer.from(`line ${at}\n`.repeat(9)),
        );
      }
      const released = before.release();
      entries.push(...released.chunks);
      await log.append(released.overflow);
    }
    const adopted = await openLog({ quotaBytes: 4000 });
    for (const entry of entries) after.restoreChunk(entry);
    for await (const found of adopted.read()) after.restoreOverflow(found);
    expect(after.received).toEqual(before.received);
    for (let at = 300; at < 400; at += 1) {
      const stream = at % 50 === 0 ? 'stderr' : 'stdout';
      after.push(stream, after.received[stream], Buffer.from(`line ${at}\n`.repeat(9)));
    }
    whole.end();
    after.end();
    expect(after.texts()).toEqual(whole.texts());
  });

  test('a reader of a long log has only one segment in memory', async () => {
    const log = await openLog();
    for (let at = 0; at < 10; at += 1) await log.append([piece('stdout', at * 500, 'x'.repeat(500))]);
    const reading = (await openLog()).read();
    expect((await reading.next()).value).toMatchObject({ rawFrom: 0 });
    for (const name of await readdir(join(parent, 'log'))) await truncate(join(parent, 'log', name), 0);
    const rest: number[] = [];
    for await (const { rawFrom } of reading) rest.push(rawFrom);
    expect(rest).toEqual([500]);
  });
});
