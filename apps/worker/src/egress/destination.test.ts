import { describe, expect, test } from 'vitest';
import { checkDestination, isProxyRefusal, parseDestination } from './destination.ts';

describe('the destination of a request', () => {
  test.each([
    ['example.org:443', { name: 'example.org', port: 443 }],
    ['EXAMPLE.org.:8443', { name: 'example.org', port: 8443 }],
    ['example.org', { name: 'example.org', port: 80 }],
    ['XN--BCHER-KVA.example:443', { name: 'xn--bcher-kva.example', port: 443 }],
  ])('parses %s into a name and a port', (authority, expected) => {
    expect(parseDestination(authority, 80)).toEqual(expected);
  });

  test.each([
    '127.0.0.1:443',
    '[::1]:443',
    '[::ffff:10.0.0.1]:443',
    '127.1:443',
    '2130706433:443',
    '0x7f000001:443',
    '0x7f.1:443',
    '017700000001:443',
    '10.0.0.1.:443',
    '[FE80::1%25eth0]:443',
    '1.2.3.4.:443',
  ])('refuses the address %s, whatever is listed', (authority) => {
    const destination = parseDestination(authority);
    if (isProxyRefusal(destination)) {
      expect(destination.status).toBe(400);
      return;
    }
    const everything = [destination.name, `${destination.name}:443`, '*.1', '*.4'];
    expect(checkDestination(destination, { allowedHosts: everything, hosts: everything })).toEqual({
      status: 403,
      reason: 'an address is not let through: name the host',
    });
  });

  test.each([
    '',
    ':443',
    'example.org',
    'example.org:0',
    'example.org:65536',
    'example.org:+443',
    'example.org:0x1bb',
    'example.org..:443',
    '[::1:443',
    '[::1]x:443',
    'example.org:443:80',
    'exa mple.org:443',
    'user@example.org:443',
    'example.org%00.evil.net:443',
    'a..b:443',
    `${'a'.repeat(64)}.org:443`,
    `${'a.'.repeat(127)}org:443`,
    'bücher.example:443',
    '-a.example:443\r\nX: y',
  ])('refuses to parse %j', (authority) => {
    expect(parseDestination(authority)).toMatchObject({ status: 400 });
  });

  test('must be listed with its port by the session and by the operator', () => {
    const check = (name: string, port: number) =>
      checkDestination(
        { name, port },
        { allowedHosts: ['*.example.org', 'gone.net'], hosts: ['*.example.org', 'other.net'] },
      )?.reason;
    expect(check('a.example.org', 443)).toBeUndefined();
    expect(check('a.example.org', 22)).toBe("it is not among the session's sandbox.allowedHosts");
    expect(check('other.net', 443)).toBe("it is not among the session's sandbox.allowedHosts");
    expect(check('gone.net', 443)).toBe('the operator of the host does not list it');
  });
});
