import { type FastifyInstance, fastify } from 'fastify';
import type { Logger } from 'pino';
import { type ApiConfig, ApiConfigError } from '../config/config.ts';
import { sendProblem } from '../problems/send-problem.ts';
import { registerWatched, type WatchedApi } from './watched-routes.ts';

/** Serves `/healthz`, `/readyz` and `/metrics` without a key. Throws an ApiConfigError if the port is taken. */
export async function serveWatchers(
  { host, port }: NonNullable<ApiConfig['metrics']>,
  watched: WatchedApi,
  log: Logger,
): Promise<FastifyInstance> {
  const app = fastify({ logger: false, forceCloseConnections: true });
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply, log));
  registerWatched(app, watched);
  await app.listen({ host, port }).catch((cause: NodeJS.ErrnoException) => {
    throw new ApiConfigError(`SHELLFLEET_API_METRICS_PORT: cannot listen on port ${port} of ${host} (${cause.code})`);
  });
  return app;
}
