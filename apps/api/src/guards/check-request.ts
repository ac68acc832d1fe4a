import type { Access } from '@shellfleet/access';
import type { FastifyRequest } from 'fastify';
import { authenticate } from '../access/authorize.ts';
import type { ApiConfig } from '../config/config.ts';
import { stopping } from '../problems/http-problem.ts';
import { requireOwnHost } from './hosts.ts';
import { requireListedOrigin } from './origins.ts';

/** What decides whether a request is answered at all. */
export interface Checks {
  access: Access;
  config: Pick<ApiConfig, 'host' | 'allowedHosts' | 'corsOrigins'>;
  isStopping(): boolean;
}

/** Checks the Host and the origin of a request. Throws what the client is told. */
export function checkPlace({ config }: Pick<Checks, 'config'>, request: FastifyRequest): void {
  requireOwnHost(request.headers.host, { bound: config.host, names: config.allowedHosts });
  requireListedOrigin(request, config.corsOrigins);
}

/** Checks the key of a request, and sets its principal. Throws what the client is told. */
export async function checkCaller({ access, config, isStopping }: Checks, request: FastifyRequest): Promise<void> {
  if (request.routeOptions?.config?.open) return;
  if (isStopping()) throw stopping();
  // A browser asks without a key whether a page may send one.
  if (request.method === 'OPTIONS' && config.corsOrigins.length > 0) return;
  request.principal = await authenticate(access, request);
}
