import type { OutputEntry } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { ChunkAssembler } from './chunk-assembler.ts';

const encode = (text: string) => new TextEncoder().encode(text);

function entry(rawFrom: number, data: Uint8Array, rest: Partial<OutputEntry> = {}): OutputEntry {
  const rawTo = rawFrom + data.byteLength;
  return { stream: 'stdout', seq: 0, rawFrom, rawTo, omittedBytes: 0, lines: 0, offset: rawFrom, data, ...rest };
}

describe('text', () => {
  const whole = 'a€😀\ufeffz\n';
  const bytes = encode(whole);
  test.each(Array.from({ length: bytes.byteLength + 1 }, (_, at) => at))(
    'is the same when cut at byte %i (CHUNK-1)',
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

  test('of one stream is not mixed up with the other', () => {
    const assembler = new ChunkAssembler();
    const euro = encode('€');
    assembler.push('1-0', entry(0, euro.subarray(0, 1)));
    expect(assembler.push('2-0', entry(0, encode('e'), { stream: 'stderr' })).text).toBe('e');
    expect(assembler.push('3-0', entry(1, euro.subarray(1))).text).toBe('€');
  });

  test('says half a character when the command has ended', () => {
    const assembler = new ChunkAssembler();
    assembler.push('1-0', entry(0, encode('€').subarray(0, 2), { seq: 4 }));
    expect(assembler.end('2-0', { stdout: 2, stderr: 0 })).toEqual([
      { id: '2-0', stream: 'stdout', seq: 5, data: new Uint8Array(), text: '\ufffd' },
    ]);
  });

  test('goes on in the middle of a character for a reader that resumes', () => {
    const assembler = new ChunkAssembler({ stdout: undefined, stderr: undefined });
    assembler.resumeAfter(entry(0, encode('€').subarray(0, 2)));
    expect(assembler.push('2-0', entry(2, encode('€').subarray(2))).text).toBe('€');
  });
});

describe('what is missing', () => {
  test('has its reason: trimmed, over the budget, or withheld by a rule', () => {
    const reasonOf = (entries: OutputEntry[]) => {
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

  test('before the first chunk is counted in it (CHUNK-2)', () => {
    expect(new ChunkAssembler().push('1-0', entry(7, encode('x'))).omittedBytes).toBe(7);
  });

  test('between two chunks is counted in the later one, with what the stream never carried (CHUNK-2)', () => {
    const assembler = new ChunkAssembler();
    assembler.push('1-0', entry(0, encode('abc')));
    expect(assembler.push('2-0', entry(10, encode('x'), { omittedBytes: 5 })).omittedBytes).toBe(12);
  });

  test('at the end is said in a chunk without data', () => {
    const assembler = new ChunkAssembler();
    assembler.push('1-0', entry(0, encode('abc')));
    expect(
      assembler.end('9-0', { stdout: 10, stderr: 2 }).map(({ stream, omittedBytes }) => [stream, omittedBytes]),
    ).toEqual([
      ['stdout', 7],
      ['stderr', 2],
    ]);
  });

  test('is nothing for a reader that resumed and has the rest', () => {
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
