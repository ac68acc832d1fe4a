import { encodeWireResult, LIMITS, newResult } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { countNewlines } from './lines.ts';
import { ResultTextsBuilder } from './result-texts.ts';

const MIB = 2 ** 20;
type Given = Partial<Record<'stdout' | 'stderr', Buffer>>;

function build(given: Given, encoding: 'utf8' | 'base64' = 'utf8') {
  const builder = new ResultTextsBuilder({ maxBytes: MIB, maxLines: 1_000_000, keep: 'head-tail', encoding });
  for (const stream of ['stdout', 'stderr'] as const) {
    const data = given[stream] ?? Buffer.alloc(0);
    builder.push(stream, data, countNewlines(data), 'merged');
  }
  const texts = builder.end(true);
  const json = encodeWireResult(newResult({ outcome: 'success', exitCode: 0, reason: 'exited' }, texts));
  return { texts, json, bytes: Buffer.byteLength(json) };
}

const noise = Buffer.from(Array.from({ length: MIB }, (_, n) => (n * 7919 + (n >> 8)) % 256));

describe('the texts of a Result', () => {
  test.each([
    ['a MiB of NULs on both streams', { stdout: Buffer.alloc(MIB), stderr: Buffer.alloc(MIB) }, 'utf8'],
    ['a MiB of NULs on one stream', { stdout: Buffer.alloc(MIB) }, 'utf8'],
    ['a MiB of noise on both streams', { stdout: noise, stderr: noise }, 'utf8'],
    ['a MiB on both streams as base64', { stdout: noise, stderr: noise }, 'base64'],
  ] as const)('fit in 4 MiB of JSON, marked and counted: %s', (_, given: Given, encoding) => {
    const { texts, bytes } = build(given, encoding);
    expect(bytes).toBeLessThanOrEqual(LIMITS.resultBytes);
    expect(bytes).toBeGreaterThan(0.85 * LIMITS.resultBytes);
    expect(texts.truncated.bytes).toBe(true);
    expect(texts.totals).toMatchObject({
      stdoutBytes: given.stdout?.length ?? 0,
      stderrBytes: given.stderr?.length ?? 0,
    });
  });

  test('keep a short stream whole, and leave its unused room to the other', () => {
    const { texts, bytes } = build({ stdout: Buffer.alloc(MIB), stderr: Buffer.from('all of it\n') });
    expect(texts.stderr).toBe('all of it\n');
    expect(texts.output).toMatch(/all of it\n$/);
    expect(bytes).toBeGreaterThan(0.9 * LIMITS.resultBytes);
    expect(bytes).toBeLessThanOrEqual(LIMITS.resultBytes);
  });

  test('have no merged text when only one stream has output', () => {
    const { texts, json } = build({ stderr: Buffer.alloc(MIB) });
    expect(texts.output).toBe(texts.stderr);
    expect(JSON.parse(json)).not.toHaveProperty('output');
  });

  test('do not cut plain text of the largest size on both streams', () => {
    const text = Buffer.from(`${'x'.repeat(62)}\n`.repeat(8_000));
    expect(build({ stdout: text, stderr: text }).texts.truncated).toEqual({ bytes: false, lines: false });
  });

  // S2-17: a program reports why it failed in its last lines.
  test.each(['head', 'tail', 'head-tail'] as const)(
    'include the last 10 KiB of both streams, whatever part they keep: %s',
    (keep) => {
      for (const limits of [
        { maxBytes: 100, maxLines: 1_000_000 },
        { maxBytes: MIB, maxLines: 2 },
        { maxBytes: MIB, maxLines: 1_000_000 },
      ]) {
        const builder = new ResultTextsBuilder({ ...limits, keep, encoding: 'base64' });
        const push = (stream: 'stdout' | 'stderr', text: string) =>
          builder.push(stream, Buffer.from(text), countNewlines(Buffer.from(text)), 'merged');
        expect(builder.last()).toBe('');
        push('stdout', 'é\n');
        expect(builder.last()).toBe('é\n');
        push('stdout', 'é'.repeat(6_000));
        expect(builder.last()).toBe('é'.repeat(5_120));
        push('stderr', 'denied\n');
        push('stdout', 'x');
        const end = 'denied\nx';
        expect(builder.last()).toBe('é'.repeat(Math.floor((10_240 - end.length) / 2)) + end);
        // The builder keeps the last 10 KiB besides the text; they do not lengthen the text.
        expect(Buffer.from(builder.end(true).stdout, 'base64').length).toBeLessThanOrEqual(limits.maxBytes + 100);
      }
    },
  );
});
