import { decodeOutputEntry, encodeOutputEntry, type OutputEntry, type StreamName } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { CleanOutput, type CleanOutputOptions } from './clean-output.ts';
import type { OverflowPiece } from './piece.ts';
import type { Redactor } from './redactor.ts';
import type { ResultTextsOptions } from './result-texts.ts';

type Options = Required<Pick<CleanOutputOptions, 'streamBytes'>> &
  Pick<CleanOutputOptions, 'createRedactor'> &
  ResultTextsOptions;

const OPTIONS: Options = {
  streamBytes: 1_000_000,
  maxBytes: 1000,
  maxLines: 100,
  keep: 'head-tail',
  encoding: 'utf8',
};

function create({ streamBytes, createRedactor, ...texts }: Options): CleanOutput {
  return new CleanOutput({ streamBytes, createRedactor, texts });
}

type Step = [StreamName, string | Buffer];

function feed(output: CleanOutput, steps: Step[]): void {
  for (const [stream, data] of steps) output.push(stream, output.received[stream], Buffer.from(data));
}

function drain(output: CleanOutput): { entries: OutputEntry[]; overflow: OverflowPiece[] } {
  const entries: OutputEntry[] = [];
  const overflow: OverflowPiece[] = [];
  for (;;) {
    const released = output.release();
    if (released.entries.length + released.overflow.length === 0) return { entries, overflow };
    entries.push(...released.entries);
    overflow.push(...released.overflow);
  }
}

function run(steps: Step[], options: Partial<Options> = {}) {
  const output = create({ ...OPTIONS, ...options });
  feed(output, steps);
  output.end();
  const released = drain(output);
  return { ...released, closing: output.closingEntries(), texts: output.texts() };
}

function textOf(pieces: { stream: StreamName; data: Uint8Array }[], stream: StreamName): string {
  return Buffer.concat(pieces.filter((piece) => piece.stream === stream).map((piece) => piece.data)).toString();
}

describe('CleanOutput', () => {
  test('joins what belongs together and keeps the order of the streams', () => {
    const { entries, texts } = run([
      ['stdout', 'a\n'],
      ['stdout', 'b\n'],
      ['stderr', 'oops\n'],
      ['stdout', 'c'],
    ]);
    expect(entries.map((entry) => ({ ...entry, data: Buffer.from(entry.data).toString() }))).toEqual([
      { stream: 'stdout', seq: 0, rawFrom: 0, rawTo: 4, omittedBytes: 0, lines: 2, offset: 0, data: 'a\nb\n' },
      { stream: 'stderr', seq: 1, rawFrom: 0, rawTo: 5, omittedBytes: 0, lines: 1, offset: 0, data: 'oops\n' },
      { stream: 'stdout', seq: 2, rawFrom: 4, rawTo: 5, omittedBytes: 0, lines: 2, offset: 4, data: 'c' },
    ]);
    expect(texts).toEqual({
      stdout: 'a\nb\nc',
      stderr: 'oops\n',
      output: 'a\nb\noops\nc',
      truncated: { bytes: false, lines: false },
      totals: { stdoutBytes: 5, stderrBytes: 5, stdoutLines: 3, stderrLines: 1 },
      redactions: {},
    });
  });

  test('OUTPUT-1: releases the same bytes for every split point and every repetition', () => {
    const bytes = Buffer.from('héllo €uro 😀\nline');
    for (let at = 0; at <= bytes.length; at += 1) {
      const output = create(OPTIONS);
      output.push('stdout', 0, bytes.subarray(0, at));
      const first = drain(output).entries;
      output.push('stdout', 0, bytes);
      output.push('stdout', Math.max(0, at - 3), bytes.subarray(Math.max(0, at - 3)));
      output.end();
      const entries = [...first, ...drain(output).entries];
      expect(textOf(entries, 'stdout')).toBe(bytes.toString());
      expect(output.texts().stdout).toBe(bytes.toString());
    }
  });

  test('OUTPUT-1: refuses a gap', () => {
    const output = create(OPTIONS);
    expect(() => output.push('stderr', 5, Buffer.from('x'))).toThrow('stderr continues at 5, but ended at 0');
  });

  test('OUTPUT-2: an entry does not cover the bytes of an unfinished character', () => {
    const output = create(OPTIONS);
    output.push('stdout', 0, Buffer.from('ab\u20ac').subarray(0, 4));
    expect(drain(output).entries.map(({ rawTo, data }) => [rawTo, Buffer.from(data).toString()])).toEqual([[2, 'ab']]);
    output.push('stdout', 4, Buffer.from('ab\u20ac').subarray(4));
    expect(
      drain(output).entries.map(({ rawFrom, rawTo, data }) => [rawFrom, rawTo, Buffer.from(data).toString()]),
    ).toEqual([[2, 5, '€']]);
  });

  test('bounds each entry, and binary stays exact', () => {
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_unused, at) => (at * 31) % 256));
    const { entries, texts } = run([['stdout', bytes]], { encoding: 'base64', maxBytes: 1_000_000, maxLines: 100_000 });
    expect(entries.every(({ data }) => data.byteLength <= 65_536)).toBe(true);
    expect(Buffer.concat(entries.map(({ data }) => data)).equals(bytes)).toBe(true);
    expect(Buffer.from(texts.stdout, 'base64').equals(bytes)).toBe(true);
  });

  test('OUTPUT-3: the stream carries exactly its budget, and one closing entry counts the rest', () => {
    const { entries, overflow, closing, texts } = run(
      [
        ['stdout', 'x\n'.repeat(40)],
        ['stderr', 'e'.repeat(50)],
        ['stdout', 'tail'],
      ],
      { streamBytes: 100 },
    );
    expect(textOf(entries, 'stdout') + textOf(entries, 'stderr')).toBe('x\n'.repeat(40) + 'e'.repeat(20));
    expect(overflow.map(({ data, ...piece }) => ({ ...piece, data: data.toString() }))).toEqual([
      {
        stream: 'stderr',
        rawFrom: 20,
        rawTo: 50,
        bytesBefore: 20,
        newlinesBefore: 0,
        redactions: {},
        data: 'e'.repeat(30),
      },
      { stream: 'stdout', rawFrom: 80, rawTo: 84, bytesBefore: 80, newlinesBefore: 40, redactions: {}, data: 'tail' },
    ]);
    expect(closing).toEqual([
      {
        stream: 'stdout',
        seq: 2,
        rawFrom: 80,
        rawTo: 84,
        omittedBytes: 4,
        lines: 40,
        offset: 84,
        data: Buffer.alloc(0),
      },
      {
        stream: 'stderr',
        seq: 3,
        rawFrom: 20,
        rawTo: 50,
        omittedBytes: 30,
        lines: 0,
        offset: 50,
        data: Buffer.alloc(0),
      },
    ]);
    expect(texts.stderr).toBe('e'.repeat(50));
    expect(texts.totals).toEqual({ stdoutBytes: 84, stderrBytes: 50, stdoutLines: 41, stderrLines: 1 });
  });

  test('OUTPUT-4: after a restart at any point the Result and the entries are what they would have been', () => {
    const steps: Step[] = Array.from({ length: 60 }, (_unused, at) => [
      at % 3 === 0 ? 'stderr' : 'stdout',
      `line ${at} €\n`.repeat(at % 5),
    ]);
    const options = { streamBytes: 700, maxBytes: 300, maxLines: 40 };
    const whole = run(steps, options);
    for (let at = 0; at <= steps.length; at += 1) {
      const before = create({ ...OPTIONS, ...options });
      feed(before, steps.slice(0, at));
      const stored = drain(before);
      const after = create({ ...OPTIONS, ...options });
      for (const entry of stored.entries) after.restoreEntry(entry);
      for (const piece of stored.overflow) after.restoreOverflow(piece);
      expect(after.received).toEqual(before.received);
      feed(after, steps.slice(at));
      after.end();
      const rest = drain(after);
      const entries = [...stored.entries, ...rest.entries];
      expect(textOf(entries, 'stdout')).toBe(textOf(whole.entries, 'stdout'));
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_entry, index) => index));
      expect(after.closingEntries().map(({ rawTo, lines }) => [rawTo, lines])).toEqual(
        whole.closing.map(({ rawTo, lines }) => [rawTo, lines]),
      );
      expect(after.texts()).toEqual(whole.texts);
    }
  });

  test('OUTPUT-4: counts what the log no longer has', () => {
    const whole = run([['stdout', 'y\n'.repeat(5000)]], { streamBytes: 100, maxBytes: 50 });
    const output = create({ ...OPTIONS, streamBytes: 100, maxBytes: 50 });
    for (const entry of whole.entries) output.restoreEntry(entry);
    const [piece] = whole.overflow;
    const last = {
      ...piece!,
      rawFrom: 9900,
      bytesBefore: 9900,
      newlinesBefore: 4950,
      data: Buffer.from('y\n'.repeat(50)),
    };
    output.restoreOverflow(last);
    output.end();
    expect(output.texts()).toEqual(whole.texts);
    expect(output.closingEntries()).toMatchObject([{ rawFrom: 100, rawTo: 10_000, omittedBytes: 9900, lines: 5000 }]);
  });

  test('says what was lost with the host log itself', () => {
    const output = create(OPTIONS);
    feed(output, [['stdout', 'one\n']]);
    output.lose('stdout', 100);
    feed(output, [['stdout', 'two\n']]);
    output.end();
    expect(drain(output).entries).toMatchObject([
      { rawFrom: 0, rawTo: 4, omittedBytes: 0 },
      { rawFrom: 4, rawTo: 104, omittedBytes: 96 },
    ]);
    expect(output.texts().stdout).toBe('one\n[... 96 bytes, 0 lines omitted ...]\ntwo\n');
  });
});

/** Replaces every SECRET, and blocks at BLOCK. Holds back a possible beginning of either. */
function createTestRedactor({ before = new Uint8Array() }: { before?: Uint8Array }): Redactor {
  const seenBefore = Buffer.from(before).toString('latin1');
  const counts: Record<string, number> = {};
  let held = '';
  let blocked: Redactor['blocked'];
  const take = (text: string, isEnd: boolean): Buffer => {
    let all = held + text;
    held = '';
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
    const keeps = isEnd || blocked !== undefined ? 0 : heldLength(replaced);
    held = replaced.slice(replaced.length - keeps);
    return Buffer.from(replaced.slice(0, replaced.length - keeps), 'latin1');
  };
  expect(seenBefore).not.toMatch(/SECRET|BLOCK/);
  return {
    push: (bytes) => take(bytes.toString('latin1'), false),
    end: () => take('', true),
    get heldBytes() {
      return held.length;
    },
    counts,
    get blocked() {
      return blocked;
    },
  };
}

/** Number of bytes at the end that may begin one of the words. */
function heldLength(text: string): number {
  for (let length = 5; length > 0; length -= 1) {
    if (['SECRET', 'BLOCK'].some((word) => text.length >= length && word.startsWith(text.slice(-length))))
      return length;
  }
  return 0;
}

describe('CleanOutput with a redactor', () => {
  const redacted = { createRedactor: createTestRedactor };

  test('OUTPUT-5: redacts before it cuts, in both streams and in their merged order (S1-49)', () => {
    const steps: Step[] = [
      ['stdout', 'a SEC'],
      ['stderr', 'b SECRET\n'],
      ['stdout', 'RET c\n'],
    ];
    const { entries, texts } = run(steps, { ...redacted, maxBytes: 12 });
    expect(entries.map(({ stream, rawTo, offset, redactions }) => ({ stream, rawTo, offset, redactions }))).toEqual([
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

  test('OUTPUT-2: what is held back is neither covered by an entry nor lost at the end', () => {
    const output = create({ ...OPTIONS, ...redacted });
    output.push('stdout', 0, Buffer.from('quiet SEC'));
    expect(drain(output).entries).toMatchObject([{ rawFrom: 0, rawTo: 6 }]);
    output.end();
    expect(drain(output).entries).toMatchObject([{ rawFrom: 6, rawTo: 9, data: Buffer.from('SEC') }]);
  });

  test('OUTPUT-5: what both streams held back does not become a secret side by side', () => {
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

  test('OUTPUT-4: after a restart at any point everything is redacted, and counted, exactly once', () => {
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
      for (const entry of stored.entries) after.restoreEntry(decodeOutputEntry(encodeOutputEntry(entry))!);
      for (const piece of stored.overflow) after.restoreOverflow(piece);
      after.push('stdout', after.received.stdout, bytes.subarray(after.received.stdout));
      after.end();
      drain(after);
      expect(after.texts(), `restarted at ${at}`).toMatchObject({ redactions: { secret: 12 } });
      expect(after.texts().totals, `restarted at ${at}`).toEqual(whole.texts.totals);
    }
  });

  test('OUTPUT-5: nothing of either stream follows a match that blocks, and everything is acknowledged', () => {
    const output = create({ ...OPTIONS, ...redacted });
    feed(output, [
      ['stdout', 'shown\n'],
      ['stderr', 'err BLOCK more'],
      ['stdout', 'after'],
      ['stderr', 'after'],
    ]);
    const released = output.release();
    expect(released).toEqual({
      entries: [
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
    expect(output.release()).toEqual({ entries: [], overflow: [], upTo: { stdout: 3_000_011, stderr: 19 } });
    expect(output.isWaiting).toBe(false);
    output.end();
    expect(output.closingEntries()).toMatchObject([
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

  test('OUTPUT-5: an adopted command stays blocked', () => {
    const before = create({ ...OPTIONS, ...redacted });
    feed(before, [['stdout', 'x BLOCK']]);
    const after = create({ ...OPTIONS, ...redacted });
    for (const entry of drain(before).entries) after.restoreEntry(entry);
    feed(after, [['stderr', 'more']]);
    after.lose('stdout', 50);
    after.end();
    expect(after.release()).toEqual({ entries: [], overflow: [], upTo: { stdout: 50, stderr: 4 } });
    expect(after.blocked).toEqual({ type: 'block', reason: 'matched' });
    expect(after.texts()).toMatchObject({ stdout: '', stderr: '', redactions: { block: 1 } });
  });

  test('small pushes are joined into entries of at most 64 KiB, and all of them are given out', () => {
    const output = create(OPTIONS);
    feed(
      output,
      Array.from({ length: 21 }, () => ['stdout', 'x'.repeat(10_000)]),
    );
    expect(output.waitingBytes).toBe(210_000);
    const { entries } = output.release();
    expect(entries.map(({ data }) => data.length)).toEqual([60_000, 60_000, 60_000, 30_000]);
    expect([output.waitingBytes, output.isWaiting]).toEqual([0, false]);
  });

  test('what a rule swallows is acknowledged, though nothing stands for it', () => {
    const swallow = { push: () => Buffer.alloc(0), end: () => Buffer.alloc(0), heldBytes: 0, counts: {} };
    const output = create({ ...OPTIONS, createRedactor: () => ({ ...swallow, blocked: undefined }) });
    output.push('stdout', 0, Buffer.alloc(500_000, 'x'));
    expect(output.release()).toMatchObject({ entries: [{ rawFrom: 0, rawTo: 500_000 }], upTo: { stdout: 500_000 } });
  });
});

function entryOf(
  stream: StreamName,
  seq: number,
  [rawFrom, rawTo]: [number, number],
  { data = '', ...rest }: Partial<Omit<OutputEntry, 'data'>> & { data?: string },
): OutputEntry {
  return { stream, seq, rawFrom, rawTo, omittedBytes: 0, lines: 0, offset: 0, ...rest, data: Buffer.from(data) };
}
