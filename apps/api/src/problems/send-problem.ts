import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { SAFE_HEADERS } from '../guards/headers.ts';
import { PROBLEM_TYPE, toProblem } from './to-problem.ts';

/** Replies with an error. One that is a bug is logged, since the reply does not tell what it is. */
export function sendProblem(
  error: unknown,
  request: Pick<FastifyRequest, 'id'>,
  reply: FastifyReply,
  log: Logger,
): FastifyReply {
  const { status, headers, body } = toProblem(error);
  // A client that leaves breaks off the reading of its body, which is no failure.
  if (body.code === 'INTERNAL' && !reply.raw.destroyed)
    log.error({ err: error, 'http.request.id': request.id }, 'request.failed');
  // Fastify closes the connection of a body that it does not read to its end. The reset of a connection on which bytes
  // still arrive can remove the reply, so endUnreadBody() closes it later.
  reply.removeHeader('connection');
  return reply
    .code(status)
    .headers({ ...SAFE_HEADERS, ...headers })
    .type(PROBLEM_TYPE)
    .send(JSON.stringify(body));
}
