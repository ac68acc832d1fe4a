import { describe, expect, test } from 'vitest';
import { compileRedaction } from '../compile.ts';

const hashKey = Buffer.alloc(32, 7);
const isFound = (secret: string, text: string) =>
  compileRedaction({ secrets: { S: secret }, hashKey }).text(text).counts.secret !== undefined;

function inLines(text: string, length: number): string {
  return text.replace(new RegExp(`.{${length}}`, 'g'), '$&\n');
}

describe('a short secret', () => {
  test('is found in base64 and hex, wherever a line break interrupts it', () => {
    const secret = 'Kq7vZ2mXw9RtL4bN8sYc';
    const missed = Array.from({ length: 80 }, (_, before) => 'p'.repeat(before)).flatMap((before) =>
      (['base64', 'hex'] as const).filter((encoding) => {
        const encoded = Buffer.from(`${before}${secret}\n`).toString(encoding);
        return !isFound(secret, inLines(encoded, encoding === 'hex' ? 60 : 76));
      }),
    );
    expect(missed).toEqual([]);
  });
});

describe('a secret in escaped form', () => {
  test.each([
    ['printf %q, which leaves a # in the middle', 'p@$$w0rd#1{x}[y]*?', String.raw`p@\$\$w0rd#1\{x\}\[y\]\*\?`],
    ['Go, whose JSON escapes for HTML', 'a<b>&c=secret&x', String.raw`{"S":"a\u003cb\u003e\u0026c=secret\u0026x"}`],
    ['Perl', 'p@$$w0rd#1{x}', String.raw`"p\@\$\$w0rd#1{x}"`],
    ['bash in the locale C', 'pässwörd', String.raw`bash: line 1: $'p\303\244ssw\303\266rd': command not found`],
    ['bash, an escape character', 'esc\x1bape-secret', String.raw`declare -x S=$'esc\Eape-secret'`],
    ['bash, a delete character', 'del\x7fete-secret', String.raw`+ : $'del\177ete-secret'`],
    [
      'bytes of Python',
      '密碼密碼密碼',
      String.raw`b'\xe5\xaf\x86\xe7\xa2\xbc\xe5\xaf\x86\xe7\xa2\xbc\xe5\xaf\x86\xe7\xa2\xbc'`,
    ],
    ['ascii of Python', 'clé密碼🔑-it', String.raw`'cl\xe9\u5bc6\u78bc\U0001f511-it'`],
    ['Node', 'esc\x1bape-\x7fsecret', String.raw`{ a: 'esc\x1Bape-\x7Fsecret' }`],
    ['dash', "it's-secret-val", `'it'"'"'s-secret-val'`],
    ['dash and busybox ash, several quotes in a row', "p'a''ss'''word", `S='p'"'"'a'"''"'ss'"'''"'word'`],
    ['SQL and YAML', "it's-secret-val", `'it''s-secret-val'`],
    ['CSV', 'say-"secret"-val', '"say-""secret""-val"'],
    ['a trace of bash', "it's-secret-val", String.raw`+ : 'it'\''s-secret-val'`],
  ])('is found as written by %s', (_name, secret, text) => {
    expect(isFound(secret, text)).toBe(true);
  });
});

describe('a secret in a written form that docs/output.md names', () => {
  const secret = 'Kq7v/Z2m Xw9é';
  const hex = Buffer.from(secret).toString('hex');
  const bytes = hex.match(/../g) ?? [];
  const le = Buffer.from(secret, 'utf16le');
  const units = [...Array(secret.length).keys()].map((at) => secret.charCodeAt(at).toString(16).padStart(4, '0'));
  const forms: [string, string | Buffer][] = [
    ['hex', hex],
    ['hex in capitals', hex.toUpperCase()],
    ['hex between colons', bytes.join(':')],
    ['hex between colons, in capitals', bytes.join(':').toUpperCase()],
    ['hex between dashes', bytes.join('-')],
    ['hex between blanks', bytes.join(' ')],
    ['hex as od prints it', inLines(` ${bytes.join(' ')}`, 12)],
    ['hex as xxd -i prints it', `  ${bytes.map((byte) => `0x${byte}`).join(', ')}`.replace('0x2f, ', '0x2f,\n  ')],
    ['bytes with \\x', bytes.map((byte) => `\\x${byte}`).join('')],
    ['bytes with \\x, in capitals', bytes.map((byte) => `\\x${byte.toUpperCase()}`).join('')],
    ['percent signs on every byte', bytes.map((byte) => `%${byte}`).join('')],
    ['JSON with every character escaped', units.map((unit) => `\\u${unit}`).join('')],
    ['JSON with every character escaped, in capitals', units.map((unit) => `\\u${unit.toUpperCase()}`).join('')],
    ['UTF-16, little-endian', le],
    ['UTF-16, big-endian', Buffer.from(le).swap16()],
  ];

  const hide = (text: string | Buffer) => {
    const redactor = compileRedaction({ secrets: { S: secret, T: 'lettersonly' }, hashKey }).redactor();
    const bytes = Buffer.concat([Buffer.from('a '), Buffer.from(text), Buffer.from(' z')]);
    const parts = Array.from(bytes, (byte) => redactor.push(Buffer.of(byte)));
    return Buffer.concat([...parts, redactor.end()]).toString('latin1');
  };

  test.each(forms)('is found as %s', (_name, text) => {
    expect(hide(text)).toMatch(/^a (?:[ \0]|0x)*\[REDACTED_SECRET\]\0? z$/);
  });

  test('is found even without special characters', () => {
    const plain = Buffer.from('lettersonly');
    const written = [...plain].map((byte) => byte.toString(16));
    for (const text of [
      `\\x${written.join('\\x')}`,
      `\\u00${written.join('\\u00')}`,
      `%${written.join('%')}`,
      written.join(':'),
    ])
      expect(hide(text)).toBe('a [REDACTED_SECRET] z');
  });
});

describe('a secret of many short lines', () => {
  test('is found, and compiled in bounded memory', () => {
    const lines = Array.from({ length: 16_000 }, (_, index) => `${(index + 2 ** 20).toString(36)}-$'`);
    const before = process.memoryUsage().rss;
    const secret = lines.join('\n');
    expect(isFound(secret, `x ${secret} y`)).toBe(true);
    expect(process.memoryUsage().rss - before).toBeLessThan(256 << 20);
  });
});
