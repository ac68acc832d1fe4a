import { isIP } from 'node:net';
import { HttpProblem } from '../problems/http-problem.ts';

/** Names by which clients may address the server. */
export interface AllowedHosts {
  /** Address on which the server listens. */
  bound: string;
  /** Further names, without a port. */
  names: readonly string[];
}

const WILDCARDS = ['0.0.0.0', '::'];

/**
 * Throws if a request addresses the server by a name that is not its own, as a page of a browser does whose name was
 * made to point here (DNS rebinding).
 */
export function requireOwnHost(header: string | undefined, allowed: AllowedHosts): void {
  const name = toName(header);
  if (name !== undefined && isOwn(name, allowed)) return;
  const message = 'The server does not answer to this Host. SHELLFLEET_API_ALLOWED_HOSTS lists further names.';
  throw new HttpProblem(421, 'UNAUTHORIZED', message);
}

function isOwn(name: string, { bound, names }: AllowedHosts): boolean {
  if (name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))) return true;
  // A page has no address of this machine as its name, unless it comes from this machine.
  const isAnyAddress = WILDCARDS.includes(bound) && isIP(name) !== 0;
  return isAnyAddress || name === bound || names.includes(name);
}

/** Returns the name in a Host header, without its port. */
function toName(header: string | undefined): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/.exec(header?.toLowerCase() ?? '');
  return match?.[1] ?? match?.[2];
}
