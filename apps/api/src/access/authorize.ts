import type { Access, Principal } from '@shellfleet/access';
import { isShellfleetError, type Scope } from '@shellfleet/protocol';
import type { FastifyRequest } from 'fastify';
import { HttpProblem, unauthenticated } from '../problems/http-problem.ts';

/** What a route asks of its caller: one of these scopes, or any key that works. */
export type NeededScope = Scope | readonly [Scope, ...Scope[]] | 'any';

/**
 * Returns who makes a request, from its key. Rejects with UNAUTHORIZED (401) without a key that works, and with the
 * code of the failure (503) while keys cannot be checked.
 */
export async function authenticate(access: Access, request: Pick<FastifyRequest, 'headers'>): Promise<Principal> {
  const { authorization, upgrade, 'sec-websocket-protocol': protocols } = request.headers;
  const token = readToken(authorization) ?? (upgrade === undefined ? undefined : readSocketToken(protocols));
  const principal = token === undefined ? undefined : await access.authenticate(token).catch(throwUnchecked);
  if (principal === undefined) throw unauthenticated();
  return principal;
}

/** Throws the error without its text, which names Redis or the issuer to somebody who has shown no key that works. */
function throwUnchecked(error: unknown): never {
  if (!isShellfleetError(error) || !error.retryable) throw error;
  throw new HttpProblem(503, error.code, 'Keys cannot be checked now. Repeat the request.', { retryable: true });
}

/** Throws UNAUTHORIZED (403) for a caller without the scope that a route asks for. */
export function requireScope({ scopes }: Principal, needed: NeededScope): void {
  const wanted = scopesOf(needed);
  if (wanted.length === 0 || wanted.some((scope) => scopes.has(scope))) return;
  const message = `This key does not have the scope ${wanted.join(' or ')}.`;
  throw new HttpProblem(403, 'UNAUTHORIZED', message, { context: { scopes: wanted } });
}

/** Returns the scopes of which one is sufficient. Empty if every key is. */
export function scopesOf(needed: NeededScope): readonly Scope[] {
  if (needed === 'any') return [];
  return typeof needed === 'string' ? [needed] : needed;
}

function readToken(header: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]{1,16384})$/i.exec(header ?? '')?.[1];
}

/** Returns the key that a browser gives as a subprotocol of a WebSocket, because it cannot set headers. */
function readSocketToken(protocols: string | undefined): string | undefined {
  return /(?:^|,)\s*shellfleet\.bearer\.([\w.~+/=-]{1,16384})\s*(?:,|$)/.exec(protocols ?? '')?.[1];
}
