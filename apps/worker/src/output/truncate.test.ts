import { OUTPUT_PROFILES } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { countNewlines, endOfLines, startOfLastLines } from './lines.ts';
import { TailBuffer } from './tail-buffer.ts';
import { Truncate, type TruncateOptions } from './truncate.ts';

/** Cuts an input in which a bar marks where one push ends and the next begins. */
function cut(input: string, options: Partial<TruncateOptions>) {
  const truncate = new Truncate({ maxBytes: 1000, maxLines: 1000, keep: 'head-tail', unit: 'characters', ...options });
  for (const part of input.split('|')) {
    const bytes = Buffer.from(part);
    truncate.push(bytes, countNewlines(bytes));
  }
  const { bytes, ...rest } = truncate.end();
  return { text: bytes.toString(), ...rest };
}

describe('Truncate', () => {
  test.each(['', 'a', 'a\n', 'a|b\n|c', '\n\n\n'])('TRUNCATION-1: returns %j unchanged when it fits', (input) => {
    const text = input.replaceAll('|', '');
    expect(cut(input, {})).toMatchObject({ text, cut: { bytes: false, lines: false } });
  });

  test.each([
    ['head', '0123456789', 4, '0123\n[... 6 bytes, 0 lines omitted ...]'],
    ['tail', '0123456789', 4, '[... 6 bytes, 0 lines omitted ...]\n6789'],
    ['head-tail', '01|2345678|9', 4, '01\n[... 6 bytes, 0 lines omitted ...]\n89'],
    ['head-tail', '0123|456789', 5, '012\n[... 5 bytes, 0 lines omitted ...]\n89'],
    ['head-tail', '01234|', 5, '01234'],
    ['head', '01\n|345', 3, '01\n[... 3 bytes, 0 lines omitted ...]'],
  ] as const)('TRUNCATION-2: keeps the %s of %s within %i bytes', (keep, input, maxBytes, text) => {
    expect(cut(input, { keep, maxBytes }).text).toBe(text);
  });

  test.each([
    ['head', 'a\nb\nc\nd\n', 2, 'a\nb\n[... 4 bytes, 2 lines omitted ...]'],
    ['tail', 'a\nb\nc\nd\n', 2, '[... 4 bytes, 2 lines omitted ...]\nc\nd\n'],
    ['head-tail', 'a\n|b\nc|\nd\n', 2, 'a\n[... 4 bytes, 2 lines omitted ...]\nd\n'],
    ['head-tail', 'a\nb\nc\nd', 3, 'a\nb\n[... 2 bytes, 1 lines omitted ...]\nd'],
    ['head-tail', 'a\nb\nc\nd', 4, 'a\nb\nc\nd'],
  ] as const)('TRUNCATION-2: keeps the %s of %j within %i lines', (keep, input, maxLines, text) => {
    const result = cut(input, { keep, maxLines });
    expect(result.text).toBe(text);
    expect(result.cut).toEqual({ bytes: false, lines: maxLines < 4 });
  });

  // S1-24
  test.each(['head', 'tail', 'head-tail'] as const)(
    'reports only the limit on lines when the limit on bytes holds, keeping the %s',
    (keep) => {
      const input = 'line of twenty bytes\n'.repeat(200);
      const bounds = { keep, maxLines: 100 };
      expect(cut(input, { ...bounds, maxBytes: 2_500 }).cut).toEqual({ bytes: false, lines: true });
      expect(cut(input, { ...bounds, maxBytes: 2_000 }).cut).toEqual({ bytes: true, lines: true });
      // 2,100 bytes hold exactly the kept lines. With 2,099 bytes one line is kept only in part.
      expect(cut(input, { ...bounds, maxBytes: 2_100 }).cut.lines).toBe(true);
      expect(cut(input, { ...bounds, maxBytes: 2_099 }).cut).toEqual({ bytes: true, lines: true });
    },
  );

  test('TRUNCATION-2: a line counts as kept if the head has a part of it', () => {
    const input = `${'x'.repeat(30)}\na\nb\nc\n`;
    expect(cut(input, { maxBytes: 20, maxLines: 3 }).text).toBe(
      'xxxxxxxxxx\n[... 23 bytes, 2 lines omitted ...]\nb\nc\n',
    );
  });

  test('TRUNCATION-1: does not cut what fits, even if half of its lines fill the head', () => {
    const input = `${'\n'.repeat(500)}|${'x'.repeat(400)}|${'\n'.repeat(99)}`;
    expect(cut(input, {}).cut).toEqual({ bytes: false, lines: false });
  });

  test('never cuts inside a character, and counts its bytes as omitted', () => {
    expect(cut('ééé', { maxBytes: 3, keep: 'head' }).text).toBe('é\n[... 4 bytes, 0 lines omitted ...]');
    expect(cut('ééé', { maxBytes: 3, keep: 'tail' }).text).toBe('[... 4 bytes, 0 lines omitted ...]\né');
    expect(cut('😀😀😀', { maxBytes: 10 }).text).toBe('😀\n[... 4 bytes, 0 lines omitted ...]\n😀');
  });

  test.each(['head', 'tail', 'head-tail'] as const)(
    'TRUNCATION-3: returns the same text for any two split points, keeping the %s',
    (keep) => {
      const input = 'one\ntwo é\n\nthree\nfour 😀\nfive';
      const options = { maxBytes: 17, maxLines: 5, keep };
      const whole = cut(input, options);
      const bytes = Buffer.from(input);
      for (let first = 0; first <= bytes.length; first += 1) {
        for (let second = first; second <= bytes.length; second += 1) {
          const truncate = new Truncate({ unit: 'characters', ...options });
          for (const part of [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)]) {
            truncate.push(part, countNewlines(part));
          }
          const { bytes: kept, ...rest } = truncate.end();
          expect({ text: kept.toString(), ...rest }).toEqual(whole);
        }
      }
    },
  );

  test('TRUNCATION-3: counts skipped bytes and lines exactly', () => {
    const truncate = new Truncate({ maxBytes: 10, maxLines: 100, keep: 'head-tail', unit: 'bytes' });
    truncate.push(Buffer.from('abcdefgh'), 0);
    truncate.skip(1_000_000, 7);
    truncate.push(Buffer.from('xyz\n'), 1);
    const { bytes, totalBytes, totalLines, cut: was } = truncate.end();
    expect({ text: bytes.toString(), totalBytes, totalLines, was }).toEqual({
      text: 'abcde\n[... 1000003 bytes, 7 lines omitted ...]\nxyz\n',
      totalBytes: 1_000_012,
      totalLines: 8,
      was: { bytes: true, lines: false },
    });
  });
});

describe('TRUNCATION-4: text that is too large in JSON', () => {
  const end = (input: Buffer, options: Partial<TruncateOptions>, most: number) => {
    const truncate = new Truncate({ maxBytes: 1e6, maxLines: 1e6, keep: 'head-tail', unit: 'characters', ...options });
    truncate.push(input, countNewlines(input));
    return truncate.end(most);
  };

  test.each(['head', 'tail', 'head-tail'] as const)('cuts at the same ends and counts, keeping the %s', (keep) => {
    const input = Buffer.from(`first\n${'\0'.repeat(10_000)}last\n`);
    const { bytes, cut: was, totalBytes, totalLines } = end(input, { keep }, 3_000);
    const text = bytes.toString();
    const jsonBytes = Buffer.byteLength(JSON.stringify(text)) - 2;
    expect(jsonBytes).toBeLessThanOrEqual(3_000);
    expect(jsonBytes).toBeGreaterThan(2_800);
    expect({ was, totalBytes, totalLines }).toEqual({
      was: { bytes: true, lines: false },
      totalBytes: 10_011,
      totalLines: 2,
    });
    const [, omitted] = /\[\.\.\. (\d+) bytes, \d+ lines omitted \.\.\.\]/.exec(text) ?? [];
    const kept = text.replace(/\n?\[\.\.\. \d+ bytes, \d+ lines omitted \.\.\.\](?:\n(?!$))?/, '');
    expect(Number(omitted)).toBe(10_011 - kept.length);
    expect([text.startsWith('first\n'), text.endsWith('last\n')]).toEqual([keep !== 'tail', keep !== 'head']);
  });

  test('cuts text that the limits have cut before, and bytes for base64', () => {
    const cutBefore = end(Buffer.alloc(5_000), { maxBytes: 1_000 }, 3_000);
    expect(cutBefore.bytes.toString()).toMatch(/^\0{241}\n\[\.\.\. 4517 bytes, 0 lines omitted \.\.\.\]\n\0{242}$/);
    const { bytes } = end(Buffer.alloc(5_000), { unit: 'bytes' }, 3_000);
    expect(bytes.toString('base64').length).toBeLessThanOrEqual(3_000);
    expect(bytes.length).toBeGreaterThan(2_150);
  });

  test('never cuts inside a character', () => {
    for (let most = 100; most < 140; most += 1) {
      const { bytes } = end(Buffer.from('😀'.repeat(100)), {}, most);
      expect(bytes.toString()).not.toContain('\uFFFD');
    }
  });
});

describe('TailBuffer and lines', () => {
  test('a tail buffer has the last bytes, however they were pushed', () => {
    const input = Buffer.from(Array.from({ length: 300 }, (_unused, at) => at % 251));
    for (const capacity of [0, 1, 7, 64, 299, 300, 5000]) {
      for (const step of [1, 3, 50, 300]) {
        const tail = new TailBuffer(capacity);
        for (let at = 0; at < input.length; at += step) tail.push(input.subarray(at, at + step));
        expect(tail.bytes()).toEqual(capacity === 0 ? Buffer.alloc(0) : input.subarray(-capacity));
      }
    }
  });

  test.each([
    ['', 1, 0, 0],
    ['a\nb\nc', 1, 2, 4],
    ['a\nb\nc', 2, 4, 2],
    ['a\nb\nc\n', 1, 2, 4],
    ['a\nb\nc\n', 9, 6, 0],
    ['a\nb', 0, 0, 3],
  ])('finds lines in %j', (text, lines, end, start) => {
    const bytes = Buffer.from(text);
    expect([endOfLines(bytes, lines), startOfLastLines(bytes, lines)]).toEqual([end, start]);
  });
});

describe('the limits of other systems', () => {
  const profile = (name: keyof typeof OUTPUT_PROFILES) => OUTPUT_PROFILES[name];

  // S1-22, S1-23
  test('langchain: keeps the first 100 lines, and counts all lines', () => {
    const input = 'line\n'.repeat(120);
    expect(cut(input, profile('langchain'))).toEqual({
      text: `${'line\n'.repeat(100)}[... 100 bytes, 20 lines omitted ...]`,
      cut: { bytes: false, lines: true },
      totalBytes: 600,
      totalLines: 120,
    });
    expect(cut('line\n'.repeat(100), profile('langchain')).cut).toEqual({ bytes: false, lines: false });
  });

  // S2-02, S2-26
  test('codex: keeps 10 KiB or 256 lines of a stream, and only whole characters', () => {
    expect(cut('é'.repeat(6_000), profile('codex'))).toMatchObject({
      text: `${'é'.repeat(5_120)}\n[... 1760 bytes, 0 lines omitted ...]`,
      cut: { bytes: true, lines: false },
      totalBytes: 12_000,
    });
    expect(cut(`x${'é'.repeat(6_000)}`, profile('codex')).text).toMatch(/^xé{5119}\n\[\.\.\. 1762 bytes/);
    expect(cut('\n'.repeat(300), profile('codex'))).toMatchObject({
      text: `${'\n'.repeat(256)}[... 44 bytes, 44 lines omitted ...]`,
      cut: { bytes: false, lines: true },
    });
  });
});
