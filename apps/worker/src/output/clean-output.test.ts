import { describe, expect, test } from 'vitest';
import { create, drain, feed, OPTIONS, run, type Step, textOf } from '../../test-support/clean-output-runs.ts';

describe('CleanOutput', () => {
  test('joins adjacent output of a stream, and keeps the order of the streams', () => {
    const { chunks, texts } = run([
      ['stdout', 'a\n'],
      ['stdout', 'b\n'],
      ['stderr', 'oops\n'],
      ['stdout', 'c'],
    ]);
    expect(chunks.map((chunk) => ({ ...chunk, data: Buffer.from(chunk.data).toString() }))).toEqual([
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
      const first = drain(output).chunks;
      output.push('stdout', 0, bytes);
      output.push('stdout', Math.max(0, at - 3), bytes.subarray(Math.max(0, at - 3)));
      output.end();
      const chunks = [...first, ...drain(output).chunks];
      expect(textOf(chunks, 'stdout')).toBe(bytes.toString());
      expect(output.texts().stdout).toBe(bytes.toString());
    }
  });

  test('OUTPUT-1: refuses bytes that leave a gap in the stream', () => {
    const output = create(OPTIONS);
    expect(() => output.push('stderr', 5, Buffer.from('x'))).toThrow('stderr continues at 5, but ended at 0');
  });

  test('OUTPUT-2: a chunk does not cover the bytes of an unfinished character', () => {
    const output = create(OPTIONS);
    output.push('stdout', 0, Buffer.from('ab\u20ac').subarray(0, 4));
    expect(drain(output).chunks.map(({ rawTo, data }) => [rawTo, Buffer.from(data).toString()])).toEqual([[2, 'ab']]);
    output.push('stdout', 4, Buffer.from('ab\u20ac').subarray(4));
    expect(
      drain(output).chunks.map(({ rawFrom, rawTo, data }) => [rawFrom, rawTo, Buffer.from(data).toString()]),
    ).toEqual([[2, 5, '€']]);
  });

  test('limits each chunk, and keeps binary output exact', () => {
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_unused, at) => (at * 31) % 256));
    const { chunks, texts } = run([['stdout', bytes]], { encoding: 'base64', maxBytes: 1_000_000, maxLines: 100_000 });
    expect(chunks.every(({ data }) => data.byteLength <= 65_536)).toBe(true);
    expect(Buffer.concat(chunks.map(({ data }) => data)).equals(bytes)).toBe(true);
    expect(Buffer.from(texts.stdout, 'base64').equals(bytes)).toBe(true);
  });

  test('OUTPUT-3: the stream takes exactly its budget, and one closing chunk counts the rest', () => {
    const { chunks, overflow, closing, texts } = run(
      [
        ['stdout', 'x\n'.repeat(40)],
        ['stderr', 'e'.repeat(50)],
        ['stdout', 'tail'],
      ],
      { streamBytes: 100 },
    );
    expect(textOf(chunks, 'stdout') + textOf(chunks, 'stderr')).toBe('x\n'.repeat(40) + 'e'.repeat(20));
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

  test('OUTPUT-4: a restart at any point changes neither the Result nor the chunks', () => {
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
      for (const chunk of stored.chunks) after.restoreChunk(chunk);
      for (const piece of stored.overflow) after.restoreOverflow(piece);
      expect(after.received).toEqual(before.received);
      feed(after, steps.slice(at));
      after.end();
      const rest = drain(after);
      const chunks = [...stored.chunks, ...rest.chunks];
      expect(textOf(chunks, 'stdout')).toBe(textOf(whole.chunks, 'stdout'));
      expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_chunk, index) => index));
      expect(after.closingChunks().map(({ rawTo, lines }) => [rawTo, lines])).toEqual(
        whole.closing.map(({ rawTo, lines }) => [rawTo, lines]),
      );
      expect(after.texts()).toEqual(whole.texts);
    }
  });

  test('OUTPUT-4: counts output that the overflow log has dropped as omitted', () => {
    const whole = run([['stdout', 'y\n'.repeat(5000)]], { streamBytes: 100, maxBytes: 50 });
    const output = create({ ...OPTIONS, streamBytes: 100, maxBytes: 50 });
    for (const chunk of whole.chunks) output.restoreChunk(chunk);
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
    expect(output.closingChunks()).toMatchObject([{ rawFrom: 100, rawTo: 10_000, omittedBytes: 9900, lines: 5000 }]);
  });

  test('counts output as omitted when its overflow log was removed', () => {
    const output = create(OPTIONS);
    feed(output, [['stdout', 'one\n']]);
    output.lose('stdout', 100);
    feed(output, [['stdout', 'two\n']]);
    output.end();
    expect(drain(output).chunks).toMatchObject([
      { rawFrom: 0, rawTo: 4, omittedBytes: 0 },
      { rawFrom: 4, rawTo: 104, omittedBytes: 96 },
    ]);
    expect(output.texts().stdout).toBe('one\n[... 96 bytes, 0 lines omitted ...]\ntwo\n');
  });
});
