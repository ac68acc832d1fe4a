import type { RedactionRule } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { cutAt, feed, feedRestarted } from '../../test-support/every-chunking.ts';
import { compileRedaction } from './compile.ts';

const hashKey = Buffer.alloc(32, 7);
const secrets = { TOKEN: 'hunter2-swordfish', NESTED: 'swordfish-and-chips', KEY: 'first line of it\nsecond line' };
const rules: RedactionRule[] = [
  { type: 'email', strategy: 'redact' },
  { type: 'credit_card', strategy: 'mask' },
  { type: 'ip', strategy: 'mask' },
  { type: 'mac_address', strategy: 'mask' },
  { type: 'url', strategy: 'redact' },
  { type: 'employee', strategy: 'redact', pattern: String.raw`\bEMP-\d{4,6}\b` },
  { type: 'span', strategy: 'hash', pattern: '<<[^>]*>>' },
  { type: 'tail', strategy: 'mask', pattern: '(?m)^todo:.*$' },
];
const all = compileRedaction({ secrets, rules, hashKey });
const blocking = compileRedaction({ rules: [{ type: 'email', strategy: 'block' }], hashKey });

const INPUTS = [
  'password hunter2-swordfish\n',
  'hunter2-hunter2-swordfish-and-chips swordfish\n',
  `${Buffer.from('user:hunter2-swordfish').toString('base64')} and more\n`,
  'first line of it\r\nsecond line\r\n  second line\n',
  'hunter2-swordfishhunter2-swordfishEMP-1234 hunter2-swordfis',
  '\xff\xfe\x80hunter2-swordfish\xe4\xb8',
  'mail alice@example.com, bob.smith+x@mail.example.co.uk.\n\xe8\x81\x94alice@example.com\xe8\x81\x94\n',
  'hunter2-swordfishalice@example.com4111111111111111\n',
  'cards 4111 1111 1111 1111 2030, 3782-822463-10005; 4222222222222 0.4111111111111111\n',
  'from 10.0.0.1:80 to ::1 and 2001:db8::1. At 12:30:45 std::vector ::ffff:10.1.2.3 fe80::1%eth0 1.2.3.4.5\n',
  'mac 00:1A:2B:3C:4D:5E 00-1a-2b-3c-4d-5e aa:bb:cc:dd:ee:ff:00:11\n',
  'see https://example.com/a?b=c, (www.example.org/x) github.com/a/b src/index.ts/x http:// htt\n',
  'EMP-123456 EMP-1234567 xEMP-1234 EMP-1234',
  'one <<a>> two <<b\n\n>> three <<c>><<d >>\n',
  'a <<x\ny>> <<>> << open\ntodo: it\ntodo:\nnot todo: it\ntodo: \xc3\xa9\xc3',
];

describe.each(INPUTS)('the redaction of %j', (input) => {
  const bytes = Buffer.from(input, 'latin1');
  const whole = feed(all.redactor(), [bytes]);

  // REDACTION-1
  test('is the same for the input in any pieces as for the whole input', () => {
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(feed(all.redactor(), cutAt(bytes, [at])), `split at ${at}`).toEqual(whole);
    }
    expect(
      feed(
        all.redactor(),
        [...bytes].map((byte) => Buffer.of(byte)),
      ),
    ).toEqual(whole);
  });

  // REDACTION-2
  test('is the same when a new redactor continues after the released bytes', () => {
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(feedRestarted(all, bytes, at), `restarted at ${at}`).toEqual(whole);
    }
  });
});

describe('a redactor', () => {
  test('finds everything that the inputs contain', () => {
    const outputs = INPUTS.map((input) => feed(all.redactor(), [Buffer.from(input, 'latin1')]).output);
    expect(outputs).toMatchInlineSnapshot(`
    [
      "password [REDACTED_SECRET]
    ",
      "hunter2-[REDACTED_SECRET] swordfish
    ",
      "dXNlcjp[REDACTED_SECRET]A== and more
    ",
      "[REDACTED_SECRET]
      [REDACTED_SECRET]
    ",
      "[REDACTED_SECRET][REDACTED_SECRET][REDACTED_EMPLOYEE] hunter2-swordfis",
      "ÿþ[REDACTED_SECRET]ä¸",
      "mail [REDACTED_EMAIL], [REDACTED_EMAIL].
    è[REDACTED_EMAIL]è
    ",
      "[REDACTED_SECRET]alice@example.com4111111111111111
    ",
      "cards **** **** **** 1111 2030, ****-****-****-0005; ************2222 0.4111111111111111
    ",
      "from *.*.*.1:80 to *:*:*:*:*:*:*:1 and *:*:*:*:*:*:*:1. At 12:30:45 std::vector *:*:*:*:*:*:*:*.*.*.3 *:*:*:*:*:*:*:1%eth0 1.2.3.4.5
    ",
      "mac **:**:**:**:**:5E **-**-**-**-**-5e *:*:*:*:*:*:*:11
    ",
      "see [REDACTED_URL], ([REDACTED_URL]) [REDACTED_URL] src/index.ts/x http:// htt
    ",
      "[REDACTED_EMPLOYEE] EMP-1234567 xEMP-1234 [REDACTED_EMPLOYEE]",
      "one <span_hash:da77b02a> two <span_hash:b128da48> three <span_hash:8521b9ca><span_hash:d099cda7>
    ",
      "a <span_hash:e6bc9da0> <span_hash:6c72741b> << open
    ****: it
    ****odo:
    not todo: it
    ****: Ã©ï¿½",
    ]
  `);
  });

  // REDACTION-6
  test('releases the text before a block and nothing more, whatever the chunking', () => {
    const bytes = Buffer.from('one\ntwo a@example.com three b@example.com\n');
    const expected = { output: 'one\ntwo ', counts: { email: 1 }, blocked: { type: 'email', reason: 'matched' } };
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(feed(blocking.redactor(), cutAt(bytes, [at]))).toEqual(expected);
    }
  });
});
