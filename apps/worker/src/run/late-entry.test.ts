import type { LatePosition } from '@shellfleet/mailbox';
import type { StoredChunk } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { CleanOutput } from '../output/clean-output.ts';
import { LateOutputOfEntry } from './late-entry.ts';

const bytes = (text: string) => Buffer.from(text);
const chain = (streamBytes = 1_000) => new CleanOutput({ streamBytes });
const position: LatePosition = { offsets: { stdout: 10, stderr: 0 }, seq: 3, carriedBytes: 10, outcome: 'success' };

/** Returns the position after the chunks. */
function after(position: LatePosition, chunks: StoredChunk[]): LatePosition {
  const offsets = { ...position.offsets };
  for (const { stream, rawTo } of chunks) offsets[stream] = rawTo;
  return { ...position, offsets, seq: position.seq + chunks.length };
}

const shown = (chunks: StoredChunk[]) =>
  chunks.map(({ data, ...entry }) => ({ ...entry, text: Buffer.from(data).toString() }));
const gap = (seq: number, rawFrom: number, rawTo: number) => ({
  stream: 'stdout',
  seq,
  rawFrom,
  rawTo,
  omittedBytes: rawTo - rawFrom,
  lines: 0,
  offset: rawFrom,
  text: '',
});

describe('late output of an entry', () => {
  test('is kept until the stored position is known, and numbered from there', () => {
    const entry = new LateOutputOfEntry();
    entry.push('stdout', 10, bytes('one\n'), true);
    entry.push('stderr', 0, bytes('two\n'), true);
    expect([entry.placed, entry.release(), entry.waitingBytes]).toEqual([false, [], 8]);
    entry.place(position, chain());
    entry.push('stdout', 14, bytes('three\n'), true);
    expect(shown(entry.release())).toEqual([
      { stream: 'stdout', seq: 3, rawFrom: 10, rawTo: 14, omittedBytes: 0, lines: 1, offset: 10, text: 'one\n' },
      { stream: 'stderr', seq: 4, rawFrom: 0, rawTo: 4, omittedBytes: 0, lines: 1, offset: 0, text: 'two\n' },
      { stream: 'stdout', seq: 5, rawFrom: 14, rawTo: 20, omittedBytes: 0, lines: 2, offset: 14, text: 'three\n' },
    ]);
    expect(entry.waitingBytes).toBe(0);
  });

  test('has a gap where the offset jumps', () => {
    const entry = new LateOutputOfEntry();
    entry.place(position, chain());
    entry.push('stdout', 15, bytes('x\n'), true);
    expect(shown(entry.release())).toMatchObject([{ rawFrom: 10, rawTo: 17, omittedBytes: 5, text: 'x\n' }]);
  });

  test('reports one gap for dropped output and output over the budget when it ends', () => {
    const entry = new LateOutputOfEntry();
    entry.place(position, chain(4));
    entry.push('stdout', 10, bytes('abcd'), true);
    entry.push('stdout', 14, bytes('over'), true);
    const kept = entry.release();
    expect(shown(kept)).toMatchObject([{ rawFrom: 10, rawTo: 14, text: 'abcd' }]);
    entry.stored(after(position, kept));
    expect(entry.isOverBudget).toBe(true);
    entry.push('stdout', 18, Buffer.alloc(1_000_000), true);
    expect(entry.waitingBytes).toBe(0);
    entry.push('stdout', 1_000_018, bytes('dropped'), false);
    entry.endStream('stdout');
    expect(entry.ended).toBe(true);
    expect(shown(entry.gaps())).toEqual([gap(4, 14, 1_000_025)]);
  });

  test('ends when no process holds a stream that it printed to', () => {
    const entry = new LateOutputOfEntry();
    entry.place(position, chain());
    entry.push('stdout', 10, bytes('a'), true);
    entry.push('stderr', 0, bytes('b'), true);
    entry.endStream('stdout');
    expect(entry.ended).toBe(false);
    entry.endStream('stderr');
    expect(entry.ended).toBe(true);
  });

  test('keeps half a character until its rest comes, or the end', () => {
    const entry = new LateOutputOfEntry();
    const euro = Buffer.from('€');
    entry.place(position, chain());
    entry.push('stdout', 10, euro.subarray(0, 2), true);
    expect(entry.release()).toEqual([]);
    entry.push('stdout', 12, euro.subarray(2), true);
    expect(shown(entry.release())).toMatchObject([{ rawFrom: 10, rawTo: 13, text: '€' }]);
    entry.push('stdout', 13, euro.subarray(0, 1), true);
    entry.end();
    expect(entry.release()).toMatchObject([{ rawFrom: 13, rawTo: 14 }]);
  });

  test('is only counted, not stored, when it has no budget in the stream', () => {
    const entry = new LateOutputOfEntry();
    entry.push('stdout', 10, bytes('withheld'), true);
    entry.place({ ...position, outcome: 'blocked' }, undefined);
    expect([entry.release(), entry.waitingBytes, entry.isOverBudget]).toEqual([[], 0, true]);
    expect(shown(entry.gaps())).toEqual([gap(3, 10, 18)]);
  });
});
