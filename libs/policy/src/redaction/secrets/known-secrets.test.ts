import { describe, expect, test } from 'vitest';
import { compileRedaction } from '../compile.ts';

const hashKey = Buffer.alloc(32);
const LONG = `correct-horse/battery+staple=${'0123456789abcdef'.repeat(6)}`;

function hide(secret: string, text: string): string {
  return compileRedaction({ secrets: { S: secret }, hashKey })
    .text(text)
    .text.replaceAll('[REDACTED_SECRET]', '▒');
}

const wrap = (text: string, columns: number, newline = '\n'): string =>
  (text.match(new RegExp(`.{1,${columns}}`, 'g')) ?? []).join(newline);

describe('a known secret', () => {
  test.each([
    ['in base64, inside longer data', LONG, Buffer.from(`a:${LONG}!`).toString('base64'), /^YTpj?▒/],
    ['in base64 as `base64` breaks it into lines', LONG, wrap(Buffer.from(LONG).toString('base64'), 76), /^▒.?=*$/],
    [
      'in base64 as OpenSSL and a terminal break it',
      LONG,
      wrap(Buffer.from(LONG).toString('base64'), 64, '\r\n'),
      /^▒.?=*$/,
    ],
    ['in hex as `xxd -p` breaks it', LONG, wrap(Buffer.from(LONG).toString('hex'), 60), /^▒$/],
    ['percent-encoded in any mixture', 'pässword/1?', 'p%c3%A4ssword%2f1?', /^▒$/],
    ['with its lines indented', 'line one\nline two', '  line one\n  line two\n', /^ {2}▒\n {2}▒\n$/],
    ['as a line of its own', 'line one\nline two', 'x line two x', /^x ▒ x$/],
    ['with the newline at its end cut off', 'swordfish\n', 'is swordfish.', /^is ▒\.$/],
    ['next to itself', 'abcabc', 'abcabcabcabcab', /^▒ab$/],
  ])('is found %s', (_name, secret, text, output) => {
    expect(hide(secret, text)).toMatch(output);
  });
});
