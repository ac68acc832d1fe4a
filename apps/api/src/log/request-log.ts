import { ATTRIBUTES } from '@shellfleet/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';

/**
 * Logs a request when its reply has ended or its client has left. The line has the pattern of the path: paths have
 * names of files, queries may have anything, and headers have tokens.
 */
export function logRequest(log: Logger, request: FastifyRequest, reply: FastifyReply): void {
  const begun = performance.now();
  reply.raw.once('close', () => {
    const { principal } = request;
    const status = reply.raw.statusCode;
    log[status >= 500 ? 'warn' : 'info'](
      {
        'http.request.id': request.id,
        'http.request.method': request.method,
        'http.route': request.routeOptions.url ?? 'unknown',
        'http.response.status_code': status,
        ...(principal === undefined ? {} : { [ATTRIBUTES.tenant]: principal.tenant, caller: principal.caller.id }),
        ...(reply.raw.writableFinished ? {} : { left: true }),
        durationMs: Math.round(performance.now() - begun),
      },
      'request.ended',
    );
  });
}
