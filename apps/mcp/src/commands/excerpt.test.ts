import type { Command, OutputChunk } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { readExcerpt, shorten } from './excerpt.ts';

/** A command that has written these pieces. */
const wrote = (...pieces: Partial<OutputChunk>[]) =>
  ({
    async *output() {
      for (const [index, piece] of pieces.entries()) {
        const { text = '' } = piece;
        yield { id: `${index}-0`, stream: 'stdout', seq: index, text, data: Buffer.from(text), ...piece };
      }
    },
  }) as unknown as Command;

describe('an excerpt of output', () => {
  test.each([0, 1, 5_120, 10_240])('is the whole text if it has %i characters', (length) => {
    expect(shorten('x'.repeat(length))).toBe('x'.repeat(length));
  });

  test('has the beginning and the end of longer text, and counts the rest', () => {
    const text = `${'a'.repeat(6_000)}${'b'.repeat(6_000)}`;
    expect(shorten(text)).toBe(`${'a'.repeat(5_120)}\n[... 1760 characters omitted ...]\n${'b'.repeat(5_120)}`);
  });

  test('never has half of a character', () => {
    expect(shorten(`x${'😀'.repeat(6_000)}`).isWellFormed()).toBe(true);
  });

  test('keeps the streams apart, counts bytes, and marks what the stream does not carry', async () => {
    const command = wrote({ text: 'é' }, { stream: 'stderr', text: 'e', omittedBytes: 7 });
    expect(await readExcerpt(command, undefined, new AbortController().signal)).toEqual({
      ...{ stdout: 'é', stderr: '\n[... 7 bytes omitted ...]\ne', output: 'é\n[... 7 bytes omitted ...]\ne' },
      ...{ isCut: false, bytes: 10, next: '1-0' },
    });
    const nothing = await readExcerpt(wrote(), '5-0', new AbortController().signal);
    expect(nothing).toMatchObject({ output: '', bytes: 0, next: '5-0' });
  });
});
