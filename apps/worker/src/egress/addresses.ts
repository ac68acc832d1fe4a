import { BlockList, isIP, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

// Addresses that the proxy connects to: those of the public internet, and those that the operator lists. All special
// addresses count as private: loopback, link-local (where clouds have their metadata), private networks, documentation,
// multicast, and the addresses of this host.

const SPECIAL_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32', // the metadata of a cloud, in a public range
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
/** Special parts of the routed range of IPv6: documentation, and tunnels, whose addresses contain another address. */
const SPECIAL_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];
const ROUTED_V6 = toBlockList(['2000::/3']);
const SPECIAL = toBlockList([...SPECIAL_V4, ...SPECIAL_V6]);

/** Creates the check of addresses. `privateAddresses` are the ranges that the operator lists. */
export function createAddressCheck(
  privateAddresses: readonly string[],
  ownAddresses = readOwn,
): (address: string) => boolean {
  const listed = toBlockList(privateAddresses);
  return (written) => {
    const address = withoutMapping(written);
    // An address with a zone belongs to a single link.
    if (isIP(address) === 0 || address.includes('%')) return false;
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (listed.check(address, family)) return true;
    if (family === 'ipv6' && !ROUTED_V6.check(address, family)) return false;
    return !SPECIAL.check(address, family) && !toBlockList(ownAddresses().map(toRange)).check(address, family);
  };
}

/** Returns 10.0.0.1 for `::ffff:10.0.0.1`. The other spelling is in no routed range. */
function withoutMapping(address: string): string {
  const lower = address.toLowerCase();
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/.test(lower) ? lower.slice('::ffff:'.length) : lower;
}

function toBlockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

const toRange = (address: string) => `${address}/${isIPv6(address) ? 128 : 32}`;

function readOwn(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}
