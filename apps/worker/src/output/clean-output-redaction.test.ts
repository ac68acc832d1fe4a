import { decodeStoredChunk, encodeStoredChunk } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { create, drain, entryOf, feed, OPTIONS, run, type Step } from '../../test-support/clean-output-runs.ts';
import type { CleanOutputOptions } from './clean-output.ts';
import type { RedactionStage } from './redactor.ts';

/** Creates a redactor that replaces every SECRET, blocks at BLOCK, and holds a possible beginning of either. */
function createTestRedactor({ before = new Uint8Array() }: { before?: Uint8Array }): RedactionStage {
  const seenBefore = Buffer.from(before).toString('latin1');
  const counts: Record<string, number> = {};
  let pending = '';
  let blocked: RedactionStage['blocked'];
  const take = (text: string, isEnd: boolean): Buffer => {
    let all = pending + text;
    pending = '';
    if (blocked !== undefined) return Buffer.alloc(0);
    const at = all.indexOf('BLOCK');
    if (at >= 0) {
      blocked = { type: 'block', reason: 'matched' };
      counts.block = 1;
      all = all.slice(0, at);
    }
    const replaced = all.replaceAll('SECRET', () => {
      counts.secret = (counts.secret ?? 0) + 1;
      return '[X]';
    });
    const keeps = isEnd || blocked !== undefined ? 0 : pendingLength(replaced);
    pending = replaced.slice(replaced.length - keeps);
    return Buffer.from(replaced.slice(0, replaced.length - keeps), 'latin1');
  };
  expect(seenBefore).not.toMatch(/SECRET|BLOCK/);
  return {
    push: (bytes) => take(bytes.toString('latin1'), false),
    end: () => take('', true),
    get pendingBytes() {
      return pending.length;
    },
    counts,
    get blocked() {
      return blocked;
    },
  };
}

/** Returns how many bytes at the end may begin one of the words. */
function pendingLength(text: string): number {
  for (let length = 5; length > 0; length -= 1) {
    if (['SECRET', 'BLOCK'].some((word) => text.length >= length && word.startsWith(text.slice(-length))))
      return length;
  }
  return 0;
}

describe('CleanOutput with a redactor', () => {
  const redacted = { createRedactor: createTestRedactor };

  // S1-49
  test('OUTPUT-5: redacts before it cuts, in both streams and in their merged order', () => {
    const steps: Step[] = [
      ['stdout', 'a SEC'],
      ['stderr', 'b SECRET\n'],
      ['stdout', 'RET c\n'],
    ];
    const { chunks, texts } = run(steps, { ...redacted, maxBytes: 12 });
    expect(chunks.map(({ stream, rawTo, offset, redactions }) => ({ stream, rawTo, offset, redactions }))).toEqual([
      { stream: 'stdout', rawTo: 2, offset: 0, redactions: undefined },
      { stream: 'stderr', rawTo: 9, offset: 0, redactions: { secret: 1 } },
      { stream: 'stdout', rawTo: 11, offset: 2, redactions: { secret: 1 } },
    ]);
    expect(texts).toEqual({
      stdout: 'a [X] c\n',
      stderr: 'b [X]\n',
      output: 'a b [X\n[... 2 bytes, 1 lines omitted ...]\n[X] c\n',
      truncated: { bytes: true, lines: false },
      totals: { stdoutBytes: 8, stderrBytes: 6, stdoutLines: 1, stderrLines: 1 },
      redactions: { secret: 2 },
    });
  });

  test('OUTPUT-2: no chunk covers pending bytes, and the end releases them', () => {
    const output = create({ ...OPTIONS, ...redacted });
    output.push('stdout', 0, Buffer.from('quiet SEC'));
    expect(drain(output).chunks).toMatchObject([{ rawFrom: 0, rawTo: 6 }]);
    output.end();
    expect(drain(output).chunks).toMatchObject([{ rawFrom: 6, rawTo: 9, data: Buffer.from('SEC') }]);
  });

  test('OUTPUT-5: pending bytes of both streams do not form a secret when merged', () => {
    const steps: Step[] = [
      ['stdout', 'SEC'],
      ['stderr', 'BLO'],
    ];
    expect(run(steps, redacted).texts.output).toBe('SECBLO');
    const createRedactor: CleanOutputOptions['createRedactor'] = (options) => {
      const redactor = createTestRedactor(options);
      return { ...redactor, push: (bytes) => redactor.push(Buffer.from(bytes.toString().replace('SECBLO', 'SECRET'))) };
    };
    expect(run(steps, { createRedactor }).texts).toMatchObject({ stdout: 'SEC', stderr: 'BLO', output: '[X]' });
  });

  test('OUTPUT-4: redacts and counts everything once, with a restart at any point', () => {
    const text = 'one SECRET two\nSECSECRETRET é SECRET\n'.repeat(4);
    const bytes = Buffer.from(text);
    const options = { ...redacted, streamBytes: 60, maxBytes: 100 };
    const whole = run([['stdout', bytes]], options);
    expect(whole.texts.redactions).toEqual({ secret: 12 });
    for (let at = 0; at <= bytes.length; at += 1) {
      const before = create({ ...OPTIONS, ...options });
      before.push('stdout', 0, bytes.subarray(0, at));
      const stored = drain(before);
      const after = create({ ...OPTIONS, ...options });
      for (const chunk of stored.chunks) after.restoreChunk(decodeStoredChunk(encodeStoredChunk(chunk))!);
      for (const piece of stored.overflow) after.restoreOverflow(piece);
      after.push('stdout', after.received.stdout, bytes.subarray(after.received.stdout));
      after.end();
      drain(after);
      expect(after.texts(), `restarted at ${at}`).toMatchObject({ redactions: { secret: 12 } });
      expect(after.texts().totals, `restarted at ${at}`).toEqual(whole.texts.totals);
    }
  });

  test('OUTPUT-5: releases nothing after a match that blocks, and acknowledges everything', () => {
    const output = create({ ...OPTIONS, ...redacted });
    feed(output, [
      ['stdout', 'shown\n'],
      ['stderr', 'err BLOCK more'],
      ['stdout', 'after'],
      ['stderr', 'after'],
    ]);
    const released = output.release();
    expect(released).toEqual({
      chunks: [
        entryOf('stdout', 0, [0, 6], { lines: 1, data: 'shown\n' }),
        entryOf('stderr', 1, [0, 14], {
          omittedBytes: 14,
          redactions: { block: 1 },
          blocked: { type: 'block', reason: 'matched' },
        }),
      ],
      overflow: [],
      upTo: { stdout: 11, stderr: 19 },
    });
    output.push('stdout', 11, Buffer.alloc(3_000_000));
    expect([output.isWaiting, output.waitingBytes]).toEqual([true, 0]);
    expect(output.release()).toEqual({ chunks: [], overflow: [], upTo: { stdout: 3_000_011, stderr: 19 } });
    expect(output.isWaiting).toBe(false);
    output.end();
    expect(output.closingChunks()).toMatchObject([
      { stream: 'stdout', seq: 2, rawFrom: 6, rawTo: 3_000_011, omittedBytes: 3_000_005 },
      { stream: 'stderr', seq: 3, rawFrom: 14, rawTo: 19, omittedBytes: 5 },
    ]);
    expect(output.texts()).toEqual({
      stdout: '',
      stderr: '',
      output: '',
      truncated: { bytes: false, lines: false },
      totals: { stdoutBytes: 6, stderrBytes: 0, stdoutLines: 1, stderrLines: 0 },
      redactions: { block: 1 },
    });
  });

  test('OUTPUT-5: keeps an adopted command blocked', () => {
    const before = create({ ...OPTIONS, ...redacted });
    feed(before, [['stdout', 'x BLOCK']]);
    const after = create({ ...OPTIONS, ...redacted });
    for (const chunk of drain(before).chunks) after.restoreChunk(chunk);
    feed(after, [['stderr', 'more']]);
    after.lose('stdout', 50);
    after.end();
    expect(after.release()).toEqual({ chunks: [], overflow: [], upTo: { stdout: 50, stderr: 4 } });
    expect(after.blocked).toEqual({ type: 'block', reason: 'matched' });
    expect(after.texts()).toMatchObject({ stdout: '', stderr: '', redactions: { block: 1 } });
  });

  test('joins small pushes into chunks of at most 64 KiB, without a loss', () => {
    const output = create(OPTIONS);
    feed(
      output,
      Array.from({ length: 21 }, () => ['stdout', 'x'.repeat(10_000)]),
    );
    expect(output.waitingBytes).toBe(210_000);
    const { chunks } = output.release();
    expect(chunks.map(({ data }) => data.length)).toEqual([60_000, 60_000, 60_000, 30_000]);
    expect([output.waitingBytes, output.isWaiting]).toEqual([0, false]);
  });

  test('acknowledges bytes that a rule replaces with nothing', () => {
    const swallow = { push: () => Buffer.alloc(0), end: () => Buffer.alloc(0), pendingBytes: 0, counts: {} };
    const output = create({ ...OPTIONS, createRedactor: () => ({ ...swallow, blocked: undefined }) });
    output.push('stdout', 0, Buffer.alloc(500_000, 'x'));
    expect(output.release()).toMatchObject({ chunks: [{ rawFrom: 0, rawTo: 500_000 }], upTo: { stdout: 500_000 } });
  });
});
