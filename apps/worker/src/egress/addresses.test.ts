import { describe, expect, test } from 'vitest';
import { createAddressCheck } from './addresses.ts';

const none = createAddressCheck([], () => ['52.1.2.3', '2600:1f00::7']);

describe('the addresses that the proxy connects to', () => {
  test.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.17.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '0.1.2.3',
    '100.64.0.1',
    '172.31.255.255',
    '198.18.0.1',
    '240.0.0.1',
    '52.1.2.3',
    '::ffff:52.1.2.3',
    '2600:1f00::7',
    '2600:1F00:0:0:0:0:0:7',
    '::1',
    '::',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd00:ec2::254',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::7f00:1',
    '100::1',
    'fec0::1',
    '5f00::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '2001::1',
    'not an address',
  ])('exclude %s unless the operator lists it', (address) => {
    expect(none(address)).toBe(false);
  });

  test.each(['93.184.216.34', '8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8'])(
    'include the public address %s',
    (address) => {
      expect(none(address)).toBe(true);
    },
  );

  test('exclude an address of the host as soon as the host has it', () => {
    const own = ['52.1.2.3'];
    const check = createAddressCheck([], () => own);
    expect(check('52.1.2.4')).toBe(true);
    own.push('52.1.2.4');
    expect(check('52.1.2.4')).toBe(false);
  });

  test('include a range that the operator lists, also for IPv4 in the spelling of IPv6', () => {
    const listed = createAddressCheck(['10.0.0.0/24', 'fd12::/16', '127.0.0.1/32'], () => []);
    expect(['10.0.0.7', 'fd12::7', '127.0.0.1', '::ffff:10.0.0.7'].map(listed)).toEqual([true, true, true, true]);
    expect(['10.0.1.7', 'fd13::7', '127.0.0.2'].map(listed)).toEqual([false, false, false]);
  });
});
