import { randomUUID } from 'node:crypto';
import { METHODS, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import cors from '@fastify/cors';
import rateLimit from '@fastify/rate-limit';
import websocket from '@fastify/websocket';
import { type Access, type ConnectFleet, Fleets, type Principal } from '@shellfleet/access';
import type { Fleet } from '@shellfleet/client';
import { isShellfleetError } from '@shellfleet/protocol';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Logger } from 'pino';
import type { WebSocket } from 'ws';
import { type NeededScope, requireScope } from './access/authorize.ts';
import type { ApiConfig } from './config/config.ts';
import { checkCaller, checkPlace } from './guards/check-request.ts';
import { requireKnownExpectation } from './guards/expectations.ts';
import { SAFE_HEADERS } from './guards/headers.ts';
import { readJsonBodies } from './guards/json-body.ts';
import { endUnreadBody } from './guards/unread-body.ts';
import { opensWebSocket } from './guards/upgrades.ts';
import { logRequest } from './log/request-log.ts';
import { ApiMetrics } from './metrics/api-metrics.ts';
import { registerWatched, type WatchedApi } from './metrics/watched-routes.ts';
import { describeApi } from './openapi/describe-api.ts';
import { HttpProblem } from './problems/http-problem.ts';
import { refuseMalformed } from './problems/refuse-malformed.ts';
import { sendProblem } from './problems/send-problem.ts';
import { ROUTES } from './routes/index.ts';
import { refuseOthers, registerRoutes } from './routes/register-routes.ts';
import { OpenWork } from './streams/open-work.ts';

// SERVE-1. A request is answered after its Host, its origin, its key and its rate were checked, in this order.
//     `/healthz` alone needs no key.
// SERVE-2. The server has no state of its own: any server of the fleet answers the next request, or resumes a stream.
// SERVE-3. A server that stops answers new requests with 503, ends waits and streams at a point from which clients
//     resume elsewhere, and lets the other requests end.
// SERVE-4. Neither log nor metric has a token, a query or a path with names.

/** What a server uses. */
export interface ServerDeps {
  access: Access;
  /** The fleet, for what belongs to no caller. */
  fleet: Pick<Fleet, 'configuration'>;
  connect: ConnectFleet;
  config: Pick<ApiConfig, 'tls' | 'host' | 'allowedHosts' | 'corsOrigins' | 'rateLimit'>;
  version: string;
  log: Logger;
  /** Called when Redis has another fleet now, so that this process can no longer serve the one that it has joined. */
  onOtherFleet?(error: Error): void;
}

/** The HTTP API of a fleet. */
export interface ApiServer {
  readonly app: FastifyInstance;
  /** What a port for those who watch the server shows. */
  readonly watched: WatchedApi;
  /** Listens, and returns the port. */
  listen(port: number): Promise<number>;
  /** Stops the server (SERVE-3), for at most this time, then closes it. */
  drain(withinMs: number): Promise<void>;
  close(): Promise<void>;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Scope that the route needs. Absent for the routes that are registered without a declaration. */
    scope?: NeededScope;
    /** Whether the route answers without a key. */
    open?: boolean;
  }
  interface FastifyRequest {
    /** Present in all handlers but those of open routes. */
    principal: Principal;
  }
}

const LONGEST_PART = 5_000;
/** Interval at which a server that stops looks whether it has answered everything. */
const LOOK_EVERY_MS = 20;

export async function createServer(deps: ServerDeps): Promise<ApiServer> {
  const { access, config, log } = deps;
  const fleets = new Fleets(deps.connect);
  const work = new OpenWork(access);
  const checks = { ...deps, isStopping: () => work.isStopping };
  const app = createApp(deps, async (request) => {
    checkPlace(checks, request);
    await checkCaller(checks, request);
  });
  const metrics = new ApiMetrics({ openWork: () => work.size, fleets: () => fleets.size });
  let inFlight = 0;
  app.server.on('request', (request, response) => endUnreadBody(request, response));

  // Registered before the checks: then it also ends the connections of requests that they refuse.
  await app.register(websocket, SOCKETS);
  app.addHook('onRequest', async (request, reply) => {
    inFlight++;
    reply.raw.once('close', () => inFlight--);
    logRequest(log, request, reply);
    metrics.measure(request, reply);
    reply.headers({ ...SAFE_HEADERS, 'x-request-id': request.id });
    checkPlace(checks, request);
  });
  // Before the key is checked, so that a page can read why its key is refused.
  if (config.corsOrigins.length > 0) await app.register(cors, toCors(config.corsOrigins));
  app.addHook('onRequest', (request) => checkCaller(checks, request));
  await app.register(rateLimit, toRateLimit(config.rateLimit));
  const refusePath = async () => {
    const message = 'There is no such path. All begin with /v1; /openapi.json lists them.';
    throw new HttpProblem(404, 'COMMAND_INVALID', message);
  };
  app.addHook('preParsing', async (request) => {
    requireKnownExpectation(request.headers.expect);
    // Before the body is read, whatever its type.
    if (request.is404) await refusePath();
  });
  app.setNotFoundHandler(refusePath);
  registerRoutes(app, ROUTES, { fleets, work });
  const watched: WatchedApi = { fleet: deps.fleet, metrics, isStopping: () => work.isStopping };
  registerWatched(app, watched, ({ principal }) => requireScope(principal, 'admin'));
  // Made for the first reader, because `up` waits for the start of the server.
  let document: string | undefined;
  app.get('/openapi.json', async (_request, reply) => {
    document ??= JSON.stringify(describeApi(ROUTES, deps.version));
    return reply.type('application/json').send(document);
  });
  refuseOthers(app, '/openapi.json', ['GET']);

  const close = async () => {
    work.stop();
    await app.close();
    await fleets[Symbol.asyncDispose]();
    access.close();
  };
  return {
    ...{ app, watched },
    async listen(port) {
      await app.listen({ host: config.host, port });
      return (app.server.address() as AddressInfo).port;
    },
    async drain(withinMs) {
      const until = performance.now() + withinMs;
      work.stop();
      while (inFlight > 0 && performance.now() < until)
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      await close();
    },
    close,
  };
}

function createApp(
  { config, log, onOtherFleet }: ServerDeps,
  check: (request: FastifyRequest) => Promise<void>,
): FastifyInstance {
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    if (isShellfleetError(error) && error.code === 'FLEET_CONFLICT') onOtherFleet?.(error);
    return sendProblem(error, request, reply, log);
  };
  /** The last reply of each connection. */
  const replies = new WeakMap<Socket, ServerResponse>();
  // Node's own refusal of a request without Host has no body. checkPlace() refuses it.
  const node = { shouldUpgradeCallback: opensWebSocket, requireHostHeader: false };
  const app = fastify({
    ...(config.tls === undefined ? { http: node } : { https: { ...config.tls, ...node } }),
    logger: false,
    // A GET of a stream has no HEAD: routes that have one declare it.
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: LONGEST_PART },
    genReqId: ({ headers }) => {
      const given = headers['x-request-id'];
      return typeof given === 'string' && /^[\w.-]{1,64}$/.test(given) ? given : randomUUID();
    },
    // No hook runs for a URL that cannot be decoded.
    frameworkErrors: (error, request, reply) =>
      void check(request).then(
        () => refuse(error, request, reply),
        (refusal: unknown) => refuse(refusal, request, reply),
      ),
    clientErrorHandler: (error, socket) => refuseMalformed(error, socket, replies.get(socket)),
  }) as unknown as FastifyInstance;
  app.server.on('request', ({ socket }, response) => replies.set(socket, response));
  // Without a listener Node itself refuses such a request, with no body.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  // Otherwise a method that Fastify does not know gets 404 on every path. A CONNECT is no request for a path.
  for (const method of METHODS)
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) app.addHttpMethod(method);
  // Bodies are JSON, but for the routes that read bytes.
  app.removeContentTypeParser('text/plain');
  readJsonBodies(app);
  app.decorateRequest('principal');
  app.setErrorHandler(refuse);
  return app;
}

function toCors(origins: readonly string[]) {
  return {
    origin: [...origins],
    methods: ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'],
    // An OPTIONS that is no question of a browser gets the same reply.
    strictPreflight: false,
    allowedHeaders: [
      'authorization',
      'content-type',
      'idempotency-key',
      'if-none-match',
      'if-range',
      'last-event-id',
      'prefer',
      'range',
      'traceparent',
      'tracestate',
      'x-request-id',
    ],
    exposedHeaders: [
      'content-disposition',
      'content-range',
      'etag',
      'idempotency-key',
      'location',
      'preference-applied',
      'retry-after',
      'x-request-id',
    ],
  };
}

function toRateLimit(max: number) {
  return {
    max,
    timeWindow: 1_000,
    hook: 'onRequest' as const,
    keyGenerator: ({ principal }: FastifyRequest) => principal?.caller.id ?? '',
    allowList: ({ principal }: FastifyRequest) => principal === undefined,
    errorResponseBuilder: () => new HttpProblem(429, 'QUOTA_EXCEEDED', `This key may make ${max} requests per second.`),
  };
}

const TERMINAL_PROTOCOL = 'shellfleet.terminal.v1';
const SOCKETS = {
  options: {
    maxPayload: 2 ** 20,
    // The subprotocol with a key is never sent back.
    handleProtocols: (protocols: Set<string>) =>
      protocols.has(TERMINAL_PROTOCOL) ? TERMINAL_PROTOCOL : (false as const),
  },
  // An error of a connection ends that connection.
  errorHandler: (_error: Error, socket: WebSocket) => socket.terminate(),
};
