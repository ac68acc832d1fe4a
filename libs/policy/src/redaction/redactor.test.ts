import { expect, test } from 'vitest';
import { compileRedaction } from './compile.ts';
import type { Redactor } from './redactor.ts';

const hashKey = Buffer.alloc(32, 7);
const secrets = { TOKEN: 'hunter2-swordfish', NESTED: 'swordfish-and-chips', KEY: 'first line of it\nsecond line' };
const redaction = compileRedaction({ secrets, hashKey });

function feed(redactor: Redactor, parts: readonly Uint8Array[]) {
  const released = [...parts.map((part) => redactor.push(part)), redactor.end()];
  return { output: Buffer.concat(released).toString('latin1'), counts: redactor.counts, blocked: redactor.blocked };
}

const INPUTS = [
  'password hunter2-swordfish\n',
  'hunter2-hunter2-swordfish-and-chips swordfish\n',
  `${Buffer.from('user:hunter2-swordfish').toString('base64')} and more\n`,
  'first line of it\r\nsecond line\r\n  second line\n',
  'hunter2-swordfishhunter2-swordfishhunter2-swordfis',
  '\xff\xfe\0hunter2-swordfish\xe4\xb8',
];

test.each(INPUTS)('R1: every split of %j gives what the whole gives', (input) => {
  const bytes = Buffer.from(input, 'latin1');
  const whole = feed(redaction.redactor(), [bytes]);
  for (let at = 0; at <= bytes.length; at += 1) {
    expect(feed(redaction.redactor(), [bytes.subarray(0, at), bytes.subarray(at)]), `split at ${at}`).toEqual(whole);
  }
  expect(
    feed(
      redaction.redactor(),
      [...bytes].map((byte) => Buffer.of(byte)),
    ),
  ).toEqual(whole);
});

test('R4: overlapping secrets become one replacement', () => {
  expect(feed(redaction.redactor(), [Buffer.from('hunter2-swordfish-and-chips\n')])).toEqual({
    output: '[REDACTED_SECRET]\n',
    counts: { secret: 1 },
    blocked: undefined,
  });
});
