import { isShellfleetError, type RedactionRule } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { compileRedaction, createRedactor } from './compile.ts';

const hashKey = Buffer.alloc(32, 7);
const redact = (rules: RedactionRule[], text: string) => compileRedaction({ rules, hashKey }).text(text);

function issuesOf(rules: unknown[]): unknown {
  try {
    compileRedaction({ rules: rules as RedactionRule[], hashKey });
  } catch (error) {
    if (isShellfleetError(error)) return { code: error.code, issues: error.context.issues };
    throw error;
  }
  return undefined;
}

// S1-32
describe('a rule that can never work', () => {
  const reason = (path: string, message: unknown) => ({ code: 'SESSION_SPEC_INVALID', issues: [{ path, message }] });
  test.each([
    [
      { type: 'nope', strategy: 'redact' },
      'type',
      expect.stringMatching(/^nope is not a type that is built in \(email, /),
    ],
    [{ type: '__proto__', strategy: 'redact' }, 'type', expect.stringMatching(/begin with a letter/)],
    [{ type: 'constructor', strategy: 'redact' }, 'type', expect.stringMatching(/^constructor is not a type/)],
    [{ type: 'x', strategy: 'hide', pattern: 'x' }, 'strategy', "must be 'block', 'redact', 'mask' or 'hash'"],
    [
      { type: 'x', strategy: 'redact', pattern: '(?=x)y' },
      'pattern',
      expect.stringMatching(/^is not a pattern that re2 takes: /),
    ],
    [
      { type: 'x', strategy: 'redact', pattern: '(?<!x)y' },
      'pattern',
      expect.stringMatching(/^is not a pattern that re2 takes: /),
    ],
    [
      { type: 'x', strategy: 'redact', pattern: String.raw`(x)\1` },
      'pattern',
      expect.stringMatching(/^is not a pattern that re2 takes: /),
    ],
    [
      { type: 'x', strategy: 'redact', pattern: '(' },
      'pattern',
      expect.stringMatching(/^is not a pattern that re2 takes: /),
    ],
    [{ type: 'x', strategy: 'redact', pattern: 'x*' }, 'pattern', 'matches the empty text'],
    [{ type: 'x', strategy: 'redact', pattern: String.raw`\b` }, 'pattern', 'matches the empty text'],
    [{ type: 'x', strategy: 'redact', pattern: '(?:[a-z]{100}){50}' }, 'pattern', expect.any(String)],
    [{ type: 'x', strategy: 'redact', pattern: 'x'.repeat(1001) }, 'pattern', 'must be at most 1000 characters'],
    [{ type: 'x', strategy: 'redact', pattern: '' }, 'pattern', 'must not be empty'],
  ])('is refused when the rules are compiled: %j', (rule, path, message) => {
    expect(issuesOf([rule])).toEqual(reason(`redaction.0.${path}`, message));
  });

  test('is refused when it is the 65th rule', () => {
    const rules = Array.from({ length: 65 }, () => ({ type: 'email', strategy: 'redact' }));
    expect(issuesOf(rules)).toEqual(reason('redaction', 'must hold at most 64 rules'));
  });
});

describe('the text of each strategy', () => {
  const card = '4111-1111-1111-1111';
  const texts: Record<string, [found: string, redact: string, mask: string]> = {
    email: ['alice@example.com', '[REDACTED_EMAIL]', 'alice@****.com'],
    credit_card: [card, '[REDACTED_CREDIT_CARD]', '****-****-****-1111'],
    ip: ['10.20.30.1', '[REDACTED_IP]', '*.*.*.1'],
    mac_address: ['00:1A:2B:3C:4D:5E', '[REDACTED_MAC_ADDRESS]', '**:**:**:**:**:5E'],
    url: ['https://example.com/a', '[REDACTED_URL]', '[MASKED_URL]'],
    github_token: [`ghp_${'a1'.repeat(18)}`, '[REDACTED_GITHUB_TOKEN]', '****a1a1'],
  };
  test.each(Object.entries(texts))('is the documented one for %s', (type, [found, redacted, masked]) => {
    const outputs = (['redact', 'mask', 'hash'] as const).map(
      (strategy) => redact([{ type, strategy }], `is ${found} ok`).text,
    );
    const hash = expect.stringMatching(new RegExp(`^is <${type}_hash:[0-9a-f]{8}> ok$`));
    expect(outputs).toEqual([`is ${redacted} ok`, `is ${masked} ok`, hash]);
    expect(redact([{ type, strategy: 'block' }], `is ${found} ok`)).toEqual({
      text: 'is ',
      counts: { [type]: 1 },
      blocked: { type, reason: 'matched' },
    });
  });

  test('is the documented one for a custom type', () => {
    const rule = (strategy: RedactionRule['strategy'], pattern: string): RedactionRule[] => [
      { type: 'pin', strategy, pattern },
    ];
    expect(redact(rule('mask', 'PIN[0-9]+'), 'PIN1234 PIN').text).toBe('****1234 PIN');
    expect(redact(rule('mask', '[0-9]{4}'), '1234').text).toBe('****');
    expect(redact(rule('redact', '密.'), '密码é').text).toBe('[REDACTED_PIN]é');
    expect(redact([{ type: 'credit_card', strategy: 'mask' }], '4111111111111111').text).toBe('************1111');
  });

  test('shows the last four characters when a masked text has another shape', () => {
    expect(redact([{ type: 'email', strategy: 'mask', pattern: '@[a-z.]+' }], 'to @example.org').text).toBe(
      'to ****.org',
    );
  });

  test.each(['constructor', 'toString', 'valueOf'])('masks the findings of a rule that is called %s', (type) => {
    const rules: RedactionRule[] = [{ type, strategy: 'mask', pattern: 'key-[0-9]+' }];
    expect(redact(rules, 'a key-12345678 b')).toMatchObject({ text: 'a ****5678 b', counts: { [type]: 1 } });
  });

  test('has equal hashes for equal values under one key, and other hashes under another', () => {
    const rules: RedactionRule[] = [{ type: 'ip', strategy: 'hash' }];
    const [first, second] = redact(rules, '10.0.0.1 10.0.0.1').text.split(' ');
    expect(first).toBe(second);
    expect(compileRedaction({ rules, hashKey: Buffer.alloc(32, 8) }).text('10.0.0.1').text).not.toBe(first);
  });
});

describe('text that several rules find', () => {
  const secrets = { MAIL: 'alice@example.com' };
  test('is named after the known secret, else a rule that blocks, else the first rule', () => {
    const rules: RedactionRule[] = [
      { type: 'url', strategy: 'redact' },
      { type: 'email', strategy: 'redact' },
    ];
    const text = 'https://x.org/?to=alice@example.com';
    expect(redact(rules, text)).toEqual({ text: '[REDACTED_URL]', counts: { url: 1 }, blocked: undefined });
    expect(redact(rules.toReversed(), text).text).toBe('[REDACTED_EMAIL]');
    expect(compileRedaction({ rules, secrets, hashKey }).text(text).counts).toEqual({ secret: 1 });
    const block: RedactionRule[] = [...rules, { type: 'mail', strategy: 'block', pattern: 'alice' }];
    expect(redact(block, text).blocked).toEqual({ type: 'mail', reason: 'matched' });
  });

  test('is replaced completely, even if one of the rules shows a part', () => {
    const rules: RedactionRule[] = [
      { type: 'email', strategy: 'mask' },
      { type: 'name', strategy: 'redact', pattern: 'alice' },
    ];
    expect(redact(rules, 'alice@example.com bob@example.com').text).toBe('[REDACTED_EMAIL] bob@****.com');
  });

  test('is replaced and counted once, also after other findings', () => {
    const rules: RedactionRule[] = [
      { type: 'email', strategy: 'redact' },
      { type: 'name', strategy: 'redact', pattern: 'alice' },
    ];
    expect(redact(rules, 'bob@example.com alice@example.com')).toEqual({
      text: '[REDACTED_EMAIL] [REDACTED_EMAIL]',
      counts: { email: 2 },
      blocked: undefined,
    });
  });
});

describe('compiled redaction', () => {
  test('does not mask a secret under six characters, and warns without its value', () => {
    const redaction = compileRedaction({ secrets: { SHORT: 'ab12!', LONG: 'ab12!x' }, hashKey });
    expect(redaction.warnings).toEqual([
      { secret: 'SHORT', message: 'is shorter than 6 characters, and is not masked' },
    ]);
    expect(redaction.text('ab12! ab12!x').text).toBe('ab12! [REDACTED_SECRET]');
  });

  test.each(['', 'true', '12345'])('does not mask the secret %j, and warns about it (case 59)', (secret) => {
    const redaction = compileRedaction({ secrets: { TOO_SHORT: secret }, hashKey });
    expect(redaction.warnings).toEqual([{ secret: 'TOO_SHORT', message: expect.stringContaining('is not masked') }]);
    expect(redaction.text('true 12345 ').text).toBe('true 12345 ');
  });

  test.each([
    ['a secret that contains another', ['password-of-a', 'my-password-of-a-team'], 'x my-password-of-a-team y'],
    ['two secrets that overlap', ['alpha-beta', 'beta-gamma'], 'x alpha-beta-gamma y'],
  ])('covers %s with one mask (case 60)', (_what, [first = '', second = ''], text) => {
    const redaction = compileRedaction({ secrets: { FIRST: first, SECOND: second }, hashKey });
    expect(redaction.text(text).text).toBe('x [REDACTED_SECRET] y');
  });

  test('finds tokens unless formats are off, but always those whose types rules name', () => {
    const text = `ghp_${'a1'.repeat(18)} npm_${'b2'.repeat(18)}`;
    const rules: RedactionRule[] = [{ type: 'npm_token', strategy: 'mask' }];
    expect(compileRedaction({ hashKey }).text(text).text).toBe('[REDACTED_GITHUB_TOKEN] [REDACTED_NPM_TOKEN]');
    expect(compileRedaction({ rules, hashKey }).text(text).text).toBe('[REDACTED_GITHUB_TOKEN] ****b2b2');
    expect(compileRedaction({ tokens: false, hashKey }).text(text).text).toBe(text);
    expect(compileRedaction({ tokens: false, rules, hashKey }).text(text).text).toBe(
      text.replace(/npm_.*/, '****b2b2'),
    );
  });

  test('needs nothing but rules for createRedactor()', () => {
    const redactor = createRedactor([{ type: 'email', strategy: 'redact' }]);
    expect(
      `${redactor.push(Buffer.from('to a@ex'))}|${redactor.push(Buffer.from('ample.com\n'))}|${redactor.end()}`,
    ).toBe('to |[REDACTED_EMAIL]\n|');
  });
});
