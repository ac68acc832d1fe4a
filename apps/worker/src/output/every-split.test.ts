import { compileRedaction } from '@shellfleet/policy';
import { describe, expect, test } from 'vitest';
import { CleanOutput } from './clean-output.ts';

// The whole chain, with the input split in two at every point and into many parts, has the output of an unsplit run.

const SECRET = 'hunter2-\u20ac-correct';
const redaction = compileRedaction({ secrets: { TOKEN: SECRET }, hashKey: new Uint8Array(32) });

function run(parts: readonly Uint8Array[], between = '', encoding: 'utf8' | 'base64' = 'utf8') {
  const clean = new CleanOutput({
    streamBytes: 64 << 20,
    texts: { maxBytes: 16 << 20, maxLines: 1_000_000, keep: 'head-tail', encoding },
    createRedactor: redaction.redactor,
  });
  const data: Uint8Array[] = [];
  const take = () => {
    while (clean.isWaiting) {
      for (const chunk of clean.release().chunks) if (chunk.stream === 'stdout') data.push(chunk.data);
    }
  };
  for (const [index, part] of parts.entries()) {
    if (index > 0) clean.push('stderr', clean.received.stderr, Buffer.from(between));
    clean.push('stdout', clean.received.stdout, part);
    take();
  }
  clean.end();
  take();
  return { data: Buffer.concat(data), ...clean.texts() };
}

const encoded = (encoding: BufferEncoding) => Buffer.from(SECRET).toString(encoding);
const INPUTS: Record<string, Buffer> = {
  'a character split over chunks': Buffer.from('a\u00e9\u20ac\u{1f600}\ufeffz\n'),
  'bytes that are no UTF-8': Buffer.from([
    0x61, 0xff, 0xc3, 0x28, 0xf0, 0x9f, 0x98, 0x41, 0x80, 0xed, 0xa0, 0x80, 0xc3,
  ]),
  'NUL bytes': Buffer.from('a\0b\0\0c\n\0'),
  'progress with carriage returns': Buffer.from('10 %\r20 %\r\u001b[2K100 %\r\ndone\n'),
  'a secret, in a row and in encodings': Buffer.from(
    `x${SECRET}${SECRET} ${encoded('base64')}\n"${encoded('hex')}" ${encodeURIComponent(SECRET)}`,
  ),
  'a secret that begins and does not end': Buffer.from(`hunter2-\u20achunter2-${SECRET.slice(0, -1)}`),
};

describe('the output chain at every split point', () => {
  test.each(Object.entries(INPUTS))('%s: the output does not depend on the split', (_name, input) => {
    const whole = run([input]);
    expect(whole.data.includes(SECRET)).toBe(false);
    for (let at = 0; at <= input.length; at += 1) {
      expect(run([input.subarray(0, at), input.subarray(at)]), `split at ${at}`).toEqual(whole);
    }
    expect(run(Array.from(input, (_byte, at) => input.subarray(at, at + 1)))).toEqual(whole);
    if (whole.redactions.secret === undefined) expect(whole.data.equals(input)).toBe(true);
  });

  test('returns invalid UTF-8 exactly, in base64', () => {
    const input = INPUTS['bytes that are no UTF-8']!;
    for (let at = 0; at <= input.length; at += 1) {
      const { stdout } = run([input.subarray(0, at), input.subarray(at)], '', 'base64');
      expect(Buffer.from(stdout, 'base64').equals(input)).toBe(true);
    }
  });

  test('merges both streams completely and in order, without a secret across their border', () => {
    const input = Buffer.from(`one ${SECRET} two`);
    const whole = run([input]);
    for (let at = 1; at < input.length; at += 1) {
      const { output, stdout } = run([input.subarray(0, at), input.subarray(at)], '|E|');
      expect(output.replace('|E|', '')).toBe(whole.stdout);
      expect(stdout).toBe(whole.stdout);
    }
    const halves = run([Buffer.from(SECRET.slice(0, 5)), Buffer.alloc(0)], SECRET.slice(5));
    expect(halves.output).not.toContain(SECRET);
  });

  test('keeps a line of 1 MB whole, with a secret at its end', () => {
    const input = Buffer.from(`${'0123456789abcdef'.repeat(65_536)}${SECRET}\n`);
    for (const size of [4_096, 65_536, 1_000_003]) {
      const parts = Array.from({ length: Math.ceil(input.length / size) }, (_, index) =>
        input.subarray(index * size, (index + 1) * size),
      );
      const { data, redactions, totals } = run(parts);
      expect(data.toString()).toBe(`${'0123456789abcdef'.repeat(65_536)}[REDACTED_SECRET]\n`);
      expect([redactions, totals.stdoutLines]).toEqual([{ secret: 1 }, 1]);
    }
  });
});
