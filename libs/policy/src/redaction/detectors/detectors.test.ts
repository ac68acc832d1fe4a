import { describe, expect, test } from 'vitest';
import { compileRedaction } from '../compile.ts';

const hashKey = Buffer.alloc(32, 7);

function foundIn(type: string, text: string): string {
  const rules = [{ type, strategy: 'redact' as const }];
  return compileRedaction({ rules, hashKey, tokens: false })
    .text(text)
    .text.replaceAll(`[REDACTED_${type.toUpperCase()}]`, '▒');
}

const CASES: Record<string, [text: string, output: string][]> = {
  email: [
    ['alice@example.com', '▒'],
    ['联系alice@example.com。', '联系▒。'],
    ['<bob.smith+tag@mail.example.co.uk>, x', '<▒>, x'],
    ['mail me at a@b.org.', 'mail me at ▒.'],
    ['user@localhost npm i foo@1.2.3 @types/node@24.1.0', 'user@localhost npm i foo@1.2.3 @types/node@24.1.0'],
    ['a@b@c.org', 'a@▒'],
    ['a@xn--bcher-kva.xn--p1ai', '▒'],
    ['a@-b.org a@b..org a@.org', 'a@-b.org a@b..org a@.org'],
    [`${'x'.repeat(70)}@example.com`, 'xxxxxx▒'],
  ],
  credit_card: [
    ['4111111111111111', '▒'],
    ['卡号4111111111111111，', '卡号▒，'],
    ['5555 5555 5555 4444 12/29', '▒ 12/29'],
    ['378282246310005 3782 822463 10005 3782-822463-10005', '▒ ▒ ▒'],
    ['30569309025904 4222222222222 6304000000000000000', '▒ ▒ ▒'],
    ['4123 4567 8901 2345 677, 4123 4567 8901 2345 61, 4123 4567 8901 2345 8, 4123 4567 8901 2349', '▒, ▒, ▒, ▒'],
    ['4123 456789 01233, 4123 456789 0120, 4123 4567 89011', '▒, ▒, ▒'],
    ['4111111111111112', '4111111111111112'],
    ['41111111111111111 x4111111111111111 4111111111111111x', '41111111111111111 x4111111111111111 4111111111111111x'],
    ['0.4111111111111111 4111111111111111.5', '0.4111111111111111 4111111111111111.5'],
    ['0000000000000000 1700000000000', '0000000000000000 1700000000000'],
    ['4111 1111-1111 1111 4111  1111 1111 1111', '4111 1111-1111 1111 4111  1111 1111 1111'],
  ],
  ip: [
    ['10.0.0.1 255.255.255.255 0.0.0.0', '▒ ▒ ▒'],
    ['ip:10.0.0.1:80, 10.0.0.1/24.', 'ip:▒:80, ▒/24.'],
    ['256.1.1.1 1.2.3 1.2.3.4.5 v1.2.3.4 01.2.3.4', '256.1.1.1 1.2.3 1.2.3.4.5 v1.2.3.4 01.2.3.4'],
    ['::1 2001:db8::1 fe80::1%eth0 [::1]:80', '▒ ▒ ▒%eth0 [▒]:80'],
    ['2001:0db8:85a3:0000:0000:8a2e:0370:7334', '▒'],
    ['::ffff:10.1.2.3 64:ff9b::192.0.2.33', '▒ ▒'],
    [
      '12:30:45 std::vector a::b :: 00:1A:2B:3C:4D:5E 1:2:3:4:5:6:7',
      '12:30:45 std::vector a::b :: 00:1A:2B:3C:4D:5E 1:2:3:4:5:6:7',
    ],
    ['1::2::3 1:2::3:4', '1::2::3 ▒'],
    ['x1::2 _1::2 g::1', 'x1::2 _1::2 g::1'],
    ['地址10.0.0.1。', '地址▒。'],
  ],
  mac_address: [
    ['00:1A:2B:3C:4D:5E 00-1a-2b-3c-4d-5e', '▒ ▒'],
    [
      '00:1A:2B:3C:4D:5E:6F 00:1A-2B:3C:4D:5E x00:1A:2B:3C:4D:5E',
      '00:1A:2B:3C:4D:5E:6F 00:1A-2B:3C:4D:5E x00:1A:2B:3C:4D:5E',
    ],
    ['地00:1A:2B:3C:4D:5E址', '地▒址'],
  ],
  url: [
    ['see https://example.com/a?b=c#d, or http://x.', 'see ▒, or ▒.'],
    ['(https://en.wikipedia.org/wiki/A_(b)) [x](https://x.org)', '(▒) [x](▒)'],
    ['www.example.org, github.com/a/b; example.com', '▒, ▒; example.com'],
    [
      'src/index.ts lib.so/x node_modules/a.js/b file:///etc/x http://',
      'src/index.ts lib.so/x node_modules/a.js/b file:///etc/x http://',
    ],
    ['网址https://example.com/路', '网址▒路'],
  ],
};

describe.each(Object.entries(CASES))('the detector of %s', (type, cases) => {
  test.each(cases)('turns %j into %j', (text, output) => {
    expect(foundIn(type, text)).toBe(output);
  });
});
