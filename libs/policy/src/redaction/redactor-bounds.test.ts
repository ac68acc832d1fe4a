import type { RedactionRule } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { cutAt, feed } from '../../test-support/every-chunking.ts';
import { compileRedaction } from './compile.ts';

const hashKey = Buffer.alloc(32, 7);

describe('the pending text of a redactor', () => {
  // REDACTION-3
  test('counts as found when 64 KiB are pending, whatever the chunking', () => {
    const redaction = compileRedaction({
      rules: [{ type: 'quote', strategy: 'mask', pattern: '(?s)<<.*>>' }],
      secrets: { A: 'aaaaaaaa' },
      hashKey,
    });
    const bytes = Buffer.from(`x <<${'.'.repeat(150_000)} and ${'a'.repeat(150_000)} end\n`);
    const whole = feed(redaction.redactor(), [bytes]);
    expect(whole).toEqual({
      output: `x [REDACTED_QUOTE]${'.'.repeat(150_002 - 65_536)} and ${'[REDACTED_SECRET]'.repeat(3)} end\n`,
      counts: { quote: 1, secret: 3 },
      blocked: undefined,
    });
    for (const pieceBytes of [1_000, 4_096, 65_536, 65_537, 100_001]) {
      const offsets = Array.from(
        { length: Math.floor(bytes.length / pieceBytes) },
        (_, index) => (index + 1) * pieceBytes,
      );
      const redactor = redaction.redactor();
      const pending: number[] = [];
      const watched = { ...redactor, push: (part: Uint8Array) => redactor.push(part) };
      const released = cutAt(bytes, offsets).map((part) => {
        const output = watched.push(part);
        pending.push(redactor.pendingBytes);
        return output;
      });
      const output = Buffer.concat([...released, redactor.end()]).toString();
      expect({ output, counts: redactor.counts, blocked: redactor.blocked }).toEqual(whole);
      expect(Math.max(...pending)).toBeLessThanOrEqual(65_536);
    }
  });

  // REDACTION-3
  test('ends at 64 KiB with a replacement, which counts as the byte before later text', () => {
    const rules: RedactionRule[] = [
      { type: 'quote', strategy: 'redact', pattern: '(?s)<<.*>>' },
      { type: 'word', strategy: 'redact', pattern: String.raw`\bword\b` },
    ];
    const redactor = compileRedaction({ rules, hashKey }).redactor();
    const { output } = feed(redactor, [Buffer.from(`<<${'a'.repeat(65_534)}`), Buffer.from('word\n')]);
    expect(output).toBe('[REDACTED_QUOTE][REDACTED_WORD]\n');
  });

  // REDACTION-2
  test('is only the part of a line that later input may turn into a finding', () => {
    const rules: RedactionRule[] = ['email', 'credit_card', 'ip', 'mac_address', 'url'].map((type) => ({
      type,
      strategy: 'redact',
    }));
    const secrets = { TOKEN: 'hunter2-swordfish', KEY: 'first line\nsecond line' };
    const redaction = compileRedaction({ rules, secrets, hashKey });
    const pendingAfter = (text: string): string => {
      const redactor = redaction.redactor();
      redactor.push(Buffer.from(text));
      return text.slice(text.length - redactor.pendingBytes);
    };
    expect(
      [
        'done\n',
        'Continue? [y/N] ',
        '$ ',
        '100%\r',
        'first line\n',
        'key: -----BEGIN PRIVATE KEY-----\n',
        'Password: ',
      ].map(pendingAfter),
    ).toEqual(['', '', '', '', 'first line\n', '-----BEGIN PRIVATE KEY-----\n', '']);
  });

  // REDACTION-2
  test.each([
    ['mac_address', 'commit deadbeef', ''],
    ['mac_address', 'at 00:1A:2', '00:1A:2'],
    ['ip', 'v 10.0.0', '10.0.0'],
    ['ip', 'v10.0.0', ''],
    ['credit_card', 'n 4111 1111', '4111 1111'],
    ['credit_card', 'n 0.4111 11', '11'],
    ['email', 'to alice', 'alice'],
    ['email', 'to alice@exa', 'alice@exa'],
    ['url', 'see https:/', 'https:/'],
    ['url', 'see https', 'https'],
  ])('under the rule %s, for "%s", is "%s"', (type, text, pending) => {
    const rules: RedactionRule[] = [{ type, strategy: 'redact' }];
    const redactor = compileRedaction({ rules, hashKey, tokens: false }).redactor();
    redactor.push(Buffer.from(text));
    expect(text.slice(text.length - redactor.pendingBytes)).toBe(pending);
  });
});

describe('a custom pattern that exceeds its time budget', () => {
  const rules: RedactionRule[] = [{ type: 'slow', strategy: 'redact', pattern: 'x[0-9]+' }];
  const clockOf = (stepMs: number) => {
    let nowMs = 0;
    return () => {
      nowMs += stepMs;
      return nowMs;
    };
  };

  test('blocks the output from that point on', () => {
    const redactor = compileRedaction({ rules, hashKey, now: clockOf(100) }).redactor();
    const outputs = Array.from({ length: 5 }, () => redactor.push(Buffer.from('line\n')).toString());
    expect({
      outputs,
      end: redactor.end().toString(),
      blocked: redactor.blocked,
      pending: redactor.pendingBytes,
    }).toEqual({
      outputs: ['line\n', 'line\n', '', '', ''],
      end: '',
      blocked: { type: 'slow', reason: 'too-slow' },
      pending: 0,
    });
  });

  test('is allowed 50 ms for each 64 KiB', () => {
    const redactor = compileRedaction({ rules, hashKey, now: clockOf(20) }).redactor();
    for (let piece = 0; piece < 50; piece += 1) redactor.push(Buffer.alloc(65_536, 'line\n'));
    expect(redactor.blocked).toBe(undefined);
  });
});
