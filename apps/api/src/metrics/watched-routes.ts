import type { Fleet } from '@shellfleet/client';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { stopping } from '../problems/http-problem.ts';
import { refuseOthers } from '../routes/register-routes.ts';
import type { ApiMetrics } from './api-metrics.ts';

/** What those who watch the server see. */
export interface WatchedApi {
  fleet: Pick<Fleet, 'configuration'>;
  metrics: ApiMetrics;
  isStopping(): boolean;
}

/** Registers the paths for those who watch the server. `check` throws if a request may not read the metrics. */
export function registerWatched(
  app: FastifyInstance,
  { fleet, metrics, isStopping }: WatchedApi,
  check: (request: FastifyRequest) => void = () => {},
): void {
  app.get('/healthz', { config: { open: true }, exposeHeadRoute: true }, async () => {
    if (isStopping()) throw stopping();
    return { status: 'alive' };
  });
  app.get('/readyz', { exposeHeadRoute: true }, async () => {
    if (isStopping()) throw stopping();
    await fleet.configuration();
    return { status: 'ready' };
  });
  app.get('/metrics', { exposeHeadRoute: true }, async (request, reply) => {
    check(request);
    return reply.type(metrics.contentType).send(await metrics.text());
  });
  for (const url of ['/healthz', '/readyz', '/metrics']) refuseOthers(app, url, ['GET', 'HEAD']);
}
