import { isIP } from 'node:net';
import { matchesPatterns } from '@shellfleet/policy';

/** Destination of a request. A name is in lower case without a final dot; an address is unchanged. */
export interface Destination {
  name: string;
  port: number;
}

/** Refusal of the proxy: an HTTP status, and the end of a sentence that begins with the destination. */
export interface ProxyRefusal {
  status: 400 | 403 | 407 | 408 | 502;
  reason: string;
}

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const ADDRESS_V6 = /^\[[0-9a-f:.%]{2,64}\]$/;
const NAME_BYTES = 253;

export const isProxyRefusal = (value: object): value is ProxyRefusal => 'status' in value;

/** Parses `name:port`, as in CONNECT, or the authority of a URL, whose port may be absent. */
export function parseDestination(authority: string, usualPort?: number): Destination | ProxyRefusal {
  const { host, port } = /^(?<host>\[[^\]]*\]|[^:]*)(?::(?<port>[0-9]{1,5}))?$/.exec(authority)?.groups ?? {};
  const name = (host ?? '').toLowerCase().replace(/\.$/, '');
  const number = port === undefined ? usualPort : Number(port);
  const isName = name.length <= NAME_BYTES && name.split('.').every((label) => LABEL.test(label));
  if ((!isName && !ADDRESS_V6.test(name)) || number === undefined || number < 1 || number > 65_535)
    return { status: 400, reason: 'it is not a host name and a port' };
  return { name, port: number };
}

/** Checks the session's list and the operator's, which may have become shorter since the session opened. */
export function checkDestination(
  { name, port }: Destination,
  { allowedHosts, hosts }: { allowedHosts: readonly string[]; hosts: readonly string[] },
): ProxyRefusal | undefined {
  if (isAddress(name)) return { status: 403, reason: 'an address is not let through: name the host' };
  if (!matchesPatterns(name, port, allowedHosts))
    return { status: 403, reason: "it is not among the session's sandbox.allowedHosts" };
  if (!matchesPatterns(name, port, hosts)) return { status: 403, reason: 'the operator of the host does not list it' };
  return undefined;
}

/** Tells whether a name is an address, also in a resolver's spellings: 127.1, 0x7f000001, 2130706433. */
function isAddress(name: string): boolean {
  return isIP(name) !== 0 || name.startsWith('[') || /^(?:[0-9]+|0x[0-9a-f]*)$/.test(name.split('.').at(-1) ?? '');
}
