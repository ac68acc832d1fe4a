import type { FastifyRequest } from 'fastify';
import { HttpProblem } from '../problems/http-problem.ts';

/**
 * Throws if a page of an origin that is not listed opens a WebSocket. CORS keeps such pages from all other replies, but
 * a browser does not apply it to WebSockets. A program other than a browser sends no origin.
 */
export function requireListedOrigin(
  { headers: { upgrade, origin, host } }: Pick<FastifyRequest, 'headers'>,
  listed: readonly string[],
): void {
  if (upgrade === undefined || origin === undefined || listed.includes(origin)) return;
  if (URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()) return;
  const message = 'Pages of this origin may not open a WebSocket. SHELLFLEET_API_CORS_ORIGINS lists those that may.';
  throw new HttpProblem(403, 'UNAUTHORIZED', message);
}
