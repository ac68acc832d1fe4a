import type { LogChunk } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { type LogRange, LogWindow } from './log-window.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

type Given = ['stdout' | 'stderr', number, string];
const LOG: Given[] = [
  ['stdout', 0, 'abc'],
  ['stderr', 0, 'xy'],
  ['stdout', 3, 'def'],
];

function read(given: readonly Given[], range: LogRange = {}): LogChunk[] {
  const window = new LogWindow(range);
  const chunks = given.flatMap(([stream, offset, text]) => window.push(stream, offset, bytes(text)) ?? []);
  return [...chunks, ...window.end()];
}

const textOf = (chunks: LogChunk[]) => chunks.map(({ text }) => text).join('');

describe('log window', () => {
  // LOGWINDOW-1
  test('returns every range, for both streams together and for each alone', () => {
    for (let offset = 0; offset <= 9; offset += 1) {
      for (let length = 0; length <= 9; length += 1) {
        const range = { offset, length };
        expect(textOf(read(LOG, range)), `${offset}+${length}`).toBe('abcxydef'.slice(offset, offset + length));
        expect(textOf(read(LOG, { ...range, stream: 'stdout' }))).toBe('abcdef'.slice(offset, offset + length));
        expect(textOf(read(LOG, { ...range, stream: 'stderr' }))).toBe('xy'.slice(offset, offset + length));
      }
    }
  });

  // LOGWINDOW-1
  test('includes missing bytes in offsets, and reports only those within the range', () => {
    const given: Given[] = [
      ['stdout', 10, 'abc'],
      ['stdout', 20, 'def'],
    ];
    const chunk = (offset: number, text: string, omittedBytes?: number) => ({
      stream: 'stdout',
      offset,
      data: bytes(text),
      text,
      ...(omittedBytes === undefined ? {} : { omittedBytes }),
    });
    expect(read(given)).toEqual([chunk(10, 'abc', 10), chunk(20, 'def', 7)]);
    expect(read(given, { offset: 8, length: 10 })).toEqual([chunk(10, 'abc', 2), chunk(20, '', 5)]);
    expect(read(given, { offset: 11 })).toEqual([chunk(11, 'bc'), chunk(20, 'def', 7)]);
  });

  test('returns repeated bytes once', () => {
    const again: Given[] = [...LOG, ['stdout', 0, 'abc'], ['stdout', 1, 'bcdefg']];
    expect(textOf(read(again, { stream: 'stdout' }))).toBe('abcdefg');
  });

  // LOGWINDOW-2
  test('joins a character that is cut at any byte', () => {
    const whole = bytes('a€😀');
    for (let at = 0; at <= whole.length; at += 1) {
      const window = new LogWindow({});
      const chunks = [
        window.push('stdout', 0, whole.subarray(0, at)),
        window.push('stderr', 0, bytes('-')),
        window.push('stdout', at, whole.subarray(at)),
      ].flatMap((chunk) => chunk ?? []);
      expect(textOf(chunks.filter(({ stream }) => stream === 'stdout'))).toBe('a€😀');
      expect(window.end()).toEqual([]);
    }
  });
});
