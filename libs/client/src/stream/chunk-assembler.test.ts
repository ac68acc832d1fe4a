import type { StoredChunk } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { ChunkAssembler } from './chunk-assembler.ts';

const encode = (text: string) => new TextEncoder().encode(text);

function entry(rawFrom: number, data: Uint8Array, rest: Partial<StoredChunk> = {}): StoredChunk {
  const rawTo = rawFrom + data.byteLength;
  return { stream: 'stdout', seq: 0, rawFrom, rawTo, omittedBytes: 0, lines: 0, offset: rawFrom, data, ...rest };
}

describe('assembled text', () => {
  const whole = 'a€😀\ufeffz\n';
  const bytes = encode(whole);
  // CHUNK-1
  test.each(Array.from({ length: bytes.byteLength + 1 }, (_, at) => at))(
    'is the same when the output is cut at byte %i',
    (at) => {
      const assembler = new ChunkAssembler();
      const chunks = [
        assembler.push('1-0', entry(0, bytes.subarray(0, at))),
        assembler.push('2-0', entry(at, bytes.subarray(at))),
      ];
      expect(chunks.map(({ text }) => text).join('')).toBe(whole);
      expect(assembler.end('3-0', { stdout: bytes.byteLength, stderr: 0 })).toEqual([]);
    },
  );

  test('is left empty, and the data is not, for a reader without text', () => {
    const assembler = new ChunkAssembler(undefined, false);
    const chunk = assembler.push('1-0', entry(0, bytes.subarray(0, 2)));
    expect(chunk).toMatchObject({ text: '', data: bytes.subarray(0, 2) });
    expect(assembler.end('2-0', { stdout: 2, stderr: 0 })).toEqual([]);
  });

  test('keeps a split character of stdout apart from stderr', () => {
    const assembler = new ChunkAssembler();
    const euro = encode('€');
    assembler.push('1-0', entry(0, euro.subarray(0, 1)));
    expect(assembler.push('2-0', entry(0, encode('e'), { stream: 'stderr' })).text).toBe('e');
    expect(assembler.push('3-0', entry(1, euro.subarray(1))).text).toBe('€');
  });

  test('ends with a replacement character when the output ended within a character', () => {
    const assembler = new ChunkAssembler();
    assembler.push('1-0', entry(0, encode('€').subarray(0, 2), { seq: 4 }));
    expect(assembler.end('2-0', { stdout: 2, stderr: 0 })).toEqual([
      { id: '2-0', stream: 'stdout', seq: 5, data: new Uint8Array(), text: '\ufffd' },
    ]);
  });

  test('is complete for a reader that resumes within a character', () => {
    const assembler = new ChunkAssembler({ stdout: undefined, stderr: undefined });
    assembler.resumeAfter(entry(0, encode('€').subarray(0, 2)));
    expect(assembler.push('2-0', entry(2, encode('€').subarray(2))).text).toBe('€');
  });
});

describe('missing output', () => {
  test('is reported as trimmed, over the budget, or withheld by a rule', () => {
    const reasonOf = (entries: StoredChunk[]) => {
      const assembler = new ChunkAssembler();
      return entries.map((each, index) => assembler.push(`${index + 1}-0`, each).omittedBecause);
    };
    const closing = { rawTo: 9, omittedBytes: 6 };
    const blocked = { type: 'email', reason: 'matched' } as const;
    expect(reasonOf([entry(7, encode('x'))])).toEqual(['trimmed']);
    expect(reasonOf([entry(0, encode('abc')), entry(3, new Uint8Array(), closing)])).toEqual([
      undefined,
      'over-budget',
    ]);
    expect(reasonOf([entry(0, new Uint8Array(), { rawTo: 3, omittedBytes: 3, blocked })])).toEqual(['withheld']);
    expect(
      reasonOf([
        entry(0, new Uint8Array(), { rawTo: 3, omittedBytes: 3, blocked }),
        entry(3, new Uint8Array(), closing),
      ]),
    ).toEqual(['withheld', 'withheld']);
    const trimmed = new ChunkAssembler().end('9-0', { stdout: 4, stderr: 0 });
    expect(trimmed.map(({ omittedBytes, omittedBecause }) => [omittedBytes, omittedBecause])).toEqual([[4, 'trimmed']]);
  });

  // CHUNK-2
  test('is counted in the first chunk when the beginning is missing', () => {
    expect(new ChunkAssembler().push('1-0', entry(7, encode('x'))).omittedBytes).toBe(7);
  });

  // CHUNK-2
  test('is counted in the later of two chunks, with bytes omitted from the stream', () => {
    const assembler = new ChunkAssembler();
    assembler.push('1-0', entry(0, encode('abc')));
    expect(assembler.push('2-0', entry(10, encode('x'), { omittedBytes: 5 })).omittedBytes).toBe(12);
  });

  test('is reported in a chunk without data at the end of the command', () => {
    const assembler = new ChunkAssembler();
    assembler.push('1-0', entry(0, encode('abc')));
    expect(
      assembler.end('9-0', { stdout: 10, stderr: 2 }).map(({ stream, omittedBytes }) => [stream, omittedBytes]),
    ).toEqual([
      ['stdout', 7],
      ['stderr', 2],
    ]);
  });

  test('is not reported to a reader that resumed and has the rest', () => {
    const assembler = new ChunkAssembler({ stdout: undefined, stderr: undefined });
    expect(assembler.push('1-0', entry(100, encode('x'))).omittedBytes).toBeUndefined();
    expect(assembler.end('2-0', { stdout: 101, stderr: 50 })).toEqual([]);
  });

  test('is counted from the beginning again when the command runs again', () => {
    const assembler = new ChunkAssembler();
    assembler.push('1-0', entry(0, encode('abc')));
    assembler.restart();
    expect(assembler.push('2-0', entry(0, encode('abc'))).omittedBytes).toBeUndefined();
  });
});
