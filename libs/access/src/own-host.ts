import { isIP } from 'node:net';

/** Names by which clients may address a server. */
export interface AllowedHosts {
  /** Address on which the server listens. */
  bound: string;
  /** Further names, without a port. */
  names: readonly string[];
}

const WILDCARDS = ['0.0.0.0', '::'];

/**
 * Tells whether a Host header has a name of the server. It has another one if a page of a browser asks whose name was
 * made to point to the server (DNS rebinding).
 */
export function isOwnHost(header: string | undefined, { bound, names }: AllowedHosts): boolean {
  const name = toName(header);
  if (name === undefined) return false;
  if (isLoopback(name)) return true;
  // A page has no address of this machine as its name, unless it comes from this machine.
  const isAnyAddress = WILDCARDS.includes(bound) && isIP(name) !== 0;
  return isAnyAddress || name === bound || names.includes(name);
}

/** Tells whether only processes of this machine reach an address or name. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

/** Returns the name in a Host header, without its port. */
function toName(header: string | undefined): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/.exec(header?.toLowerCase() ?? '');
  return match?.[1] ?? match?.[2];
}
