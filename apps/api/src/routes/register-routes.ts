import { context } from '@opentelemetry/api';
import type { Fleets } from '@shellfleet/access';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import { requireScope } from '../access/authorize.ts';
import { traceContextOf } from '../guards/trace.ts';
import { HttpProblem } from '../problems/http-problem.ts';
import { type OpenWork, onceClosed } from '../streams/open-work.ts';
import { parserOf } from './parse-request.ts';
import type { Route } from './route.ts';

export interface RouteDeps {
  fleets: Fleets;
  work: OpenWork;
}

const BASE = '/v1';
/** Most bytes of a JSON body, unless the route has another limit. */
const BODY_BYTES = 8 * 2 ** 20;

/** Registers the declared routes, and a reply to the other methods of their paths. */
export function registerRoutes(app: FastifyInstance, routes: readonly Route[], deps: RouteDeps): void {
  const isOfBytes = ({ body }: Route) => body === 'bytes';
  for (const route of routes.filter((one) => !isOfBytes(one))) register(app, route, deps);
  // These bodies are not read before their handlers read them, whatever their type.
  app.register(async (inner) => {
    inner.removeAllContentTypeParsers();
    inner.addContentTypeParser('*', (_request, _payload, done) => done(null));
    for (const route of routes.filter(isOfBytes)) register(inner, route, deps);
  });
  for (const [path, own] of Map.groupBy(routes, (one) => one.path)) {
    const methods = own.map(({ method }) => method);
    refuseOthers(app, toUrl(path), methods);
  }
}

/** Returns the URL of a path in the syntax of the router. */
function toUrl(path: string): string {
  const escaped = path.replaceAll(':', '::');
  return `${BASE}${escaped.replace(/\{\w+\*\}$/, '*').replace(/\{(\w+)\}/g, ':$1')}`;
}

function register(app: FastifyInstance, route: Route, deps: RouteDeps): void {
  const parse = parserOf(route);
  app.route({
    method: route.method,
    url: toUrl(route.path),
    bodyLimit: route.bodyLimit ?? BODY_BYTES,
    config: { scope: route.scope },
    ...(route.socket === undefined ? {} : toSocketRoute(route, parse, deps)),
    handler: (request, reply) =>
      context.with(traceContextOf(request), () => answer(route, parse, deps, request, reply)),
  });
}

/** Returns what a route has for WebSockets. What is refused is refused before the connection becomes one. */
function toSocketRoute(route: Route, parse: ReturnType<typeof parserOf>, { fleets, work: all }: RouteDeps) {
  return {
    async preValidation(request: FastifyRequest) {
      requireScope(request.principal, route.scope);
      parse(request);
    },
    async wsHandler(socket: WebSocket, request: FastifyRequest) {
      using work = all.begin(request.principal, request.raw.socket);
      const borrowing = fleets.borrow(request.principal);
      borrowing.catch(() => {});
      const openFleet = async () => (await borrowing).fleet;
      try {
        await route.socket?.({ ...parse(request), openFleet, socket, work });
      } finally {
        void borrowing.then(
          (borrowed) => borrowed[Symbol.dispose](),
          () => {},
        );
      }
    },
  };
}

async function answer(
  route: Route,
  parse: ReturnType<typeof parserOf>,
  { fleets, work }: RouteDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { principal } = request;
  requireScope(principal, route.scope);
  const parts = parse(request);
  const borrowed = await fleets.borrow(principal);
  onceClosed(reply.raw, () => borrowed[Symbol.dispose]());
  const result = await route.handler({
    ...parts,
    ...{ principal, request, reply, fleet: borrowed.fleet },
    beginWork: (options) => work.begin(principal, reply.raw, options),
    keepFleetFor: (promise) => borrowed.extendTo(promise),
  });
  if (result === undefined && !reply.sent) return reply.code(204).send();
  return result;
}

/** Replies 405 to the methods that a path does not have. */
export function refuseOthers(app: FastifyInstance, url: string, own: readonly string[]): void {
  const allow = own.join(', ');
  const refuse = async () => {
    throw new HttpProblem(405, 'COMMAND_INVALID', `This path does not have this method. It has: ${allow}.`, {
      headers: { allow },
    });
  };
  app.route({
    method: app.supportedMethods.filter((method) => !own.includes(method)),
    url,
    // Refuses before the body is read, whatever its type.
    preParsing: refuse,
    handler: refuse,
  });
}
