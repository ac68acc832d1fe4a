import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ConfigError, type WorkerConfig } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';

// The port for those who watch a worker. Everything that it answers is made in this process, or read with few calls.
//
// METRICS-1. Only GET and HEAD are answered, without reading a body, over a bounded number of connections.
// METRICS-2. Requests that come while the metrics are being read share the reading.
// METRICS-3. `/scale` needs the token, which is compared in constant time and is in no log and no reply.

const CONNECTIONS = 64;
const HEAD_BYTES = 8 * 1024;
const REQUEST_WITHIN_MS = 10_000;

export interface Watched {
  /** Returns the metrics in the text format of Prometheus. */
  metrics(): Promise<string>;
  contentType: string;
  /** Returns why the worker takes no session, one sentence each. Empty when it takes sessions. */
  reasons(): string[];
  /** Returns the demand of the fleet. Undefined if no host has counted it yet. */
  scale(): Promise<object | undefined>;
}

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

interface Reply {
  status: number;
  type: string;
  text: string;
  headers?: Record<string, string>;
}

/** Serves `/metrics`, `/healthz`, `/readyz` and `/scale` until closed. Throws a ConfigError if the port is taken. */
export async function serveMetrics(
  { port, host, scaleToken }: NonNullable<WorkerConfig['metrics']>,
  watched: Watched,
  logger: Logger,
): Promise<MetricsServer> {
  let reading: Promise<string> | undefined;
  const shared: Watched = {
    ...watched,
    metrics() {
      reading ??= watched.metrics().finally(() => {
        reading = undefined;
      });
      return reading;
    },
  };
  const limits = { maxHeaderSize: HEAD_BYTES, requestTimeout: REQUEST_WITHIN_MS, connectionsCheckingInterval: 1_000 };
  const server = createServer(limits, (request, response) => {
    answer(request, shared, scaleToken)
      .catch((err: unknown): Reply => {
        logger.warn({ err }, 'metrics.failed');
        return plain(503, 'It could not be read; the log of the worker says why.');
      })
      .then((reply) => send(request, response, reply));
  });
  server.maxConnections = CONNECTIONS;
  // Also ends a connection whose client does not read its answer. A scrape waits for Redis for less.
  server.timeout = 3 * REQUEST_WITHIN_MS;
  const listening = once(server, 'listening');
  // Without a host, Node.js listens at `::`, and at `0.0.0.0` on a machine without IPv6.
  if (host === '::') server.listen(port);
  else server.listen(port, host);
  await listening.catch((cause: NodeJS.ErrnoException) => {
    throw new ConfigError(`SHELLFLEET_METRICS_PORT: cannot listen on port ${port} of ${host} (${cause.code})`);
  });
  const { port: actual, address } = server.address() as AddressInfo;
  server.on('error', (err) => logger.warn({ err }, 'metrics.failed'));
  logger.info({ 'server.address': address, 'server.port': actual }, 'metrics.listening');
  return {
    port: actual,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer({ method, url = '', headers }: IncomingMessage, watched: Watched, token: string | undefined) {
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'Only GET and HEAD are answered.');
  switch (url.replace(/\?.*$/, '')) {
    case '/metrics':
      return { status: 200, type: watched.contentType, text: await watched.metrics() };
    case '/healthz':
      return plain(200, 'alive');
    case '/readyz': {
      const reasons = watched.reasons();
      return reasons.length === 0 ? plain(200, 'ready') : plain(503, reasons.join('\n'));
    }
    case '/scale':
      return scale(headers.authorization, watched, token);
    default:
      return plain(404, 'There are /metrics, /healthz, /readyz and /scale.');
  }
}

async function scale(given: string | undefined, watched: Watched, token: string | undefined): Promise<Reply> {
  if (!token) return plain(403, 'This worker has no SHELLFLEET_SCALE_TOKEN, so nobody may read this.');
  if (!isEqual(given ?? '', `Bearer ${token}`))
    return { ...plain(401, 'The bearer token is wrong or missing.'), headers: { 'www-authenticate': 'Bearer' } };
  const demand = await watched.scale();
  // Zero would end hosts that are needed.
  if (demand === undefined) return plain(503, 'No host has counted the waiting sessions yet.');
  return { status: 200, type: 'application/json', text: `${JSON.stringify(demand)}\n` };
}

/** Compares digests, whose length tells nothing about that of the token (METRICS-3). */
function isEqual(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

const plain = (status: number, text: string): Reply => ({
  status,
  type: 'text/plain; charset=utf-8',
  text: `${text}\n`,
});

function send({ method }: IncomingMessage, response: ServerResponse, { status, type, text, headers }: Reply): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    ...headers,
  });
  response.end(method === 'HEAD' ? undefined : text);
}
