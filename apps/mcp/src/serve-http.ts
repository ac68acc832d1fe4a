import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { type AuthInfo, createMcpHandler } from '@modelcontextprotocol/server';
import { Fleets, openAccess } from '@shellfleet/access';
import { Fleet } from '@shellfleet/client';
import { ShellfleetError } from '@shellfleet/protocol';
import { HttpConnection } from './connections/http-connection.ts';
import type { StdioIdentity } from './connections/stdio-connection.ts';
import { admitRequest, MCP_PATH, type RefusedRequest } from './http/admit-request.ts';
import { type HttpSettings, requireSafeAddress } from './http/http-settings.ts';
import { createMcpServer } from './server/create-server.ts';
import { inShort, type McpSettings, MESSAGE_BYTES } from './settings.ts';

// MCP-HTTP-1. Every request is checked by itself (Host, origin, key), and served by a server object of its own. Nothing
//     is kept between requests, so any server of the fleet can answer the next one.
// MCP-HTTP-2. A response ends within a second after its key was revoked.

/** Headers of every response. Output of sessions is untrusted. */
const SAFE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': 'sandbox',
};

/**
 * Serves MCP over streamable HTTP until the signal aborts. Calls `onListening` with the URL. Rejects with
 * COMMAND_INVALID for an address that is not safe or taken, and as `Fleet.connect`.
 */
export async function serveMcpOverHttp(
  settings: McpSettings,
  http: HttpSettings,
  connect: StdioIdentity['connect'],
  { signal, onListening }: { signal: AbortSignal; onListening(url: string): void },
): Promise<void> {
  requireSafeAddress(http);
  await using fleet = await Fleet.connect(connect);
  await using fleets = new Fleets((identity) => Fleet.connect({ ...connect, ...identity }));
  const log = { warn: ({ err }: { err: unknown }, event: string) => settings.log(`${event}: ${String(err)}`) };
  const access = openAccess(fleet, { oidc: http.oidc, log });
  const onerror = (error: Error) => settings.log(`A request failed or was refused: ${inShort(error)}`);
  const limits = { maxRequestBodySize: MESSAGE_BYTES, onerror };
  const handler = createMcpHandler(({ era, authInfo }) => createMcpServer(connectionOf(authInfo), era), limits);
  const answer = toNodeHandler(handler, limits);
  const serve = async (request: IncomingMessage & { auth?: AuthInfo }, response: ServerResponse) => {
    for (const [name, value] of Object.entries(SAFE_HEADERS)) response.setHeader(name, value);
    const caller = await admitRequest(request, access, http);
    if ('status' in caller) return refuse(response, caller);
    using connection = new HttpConnection(settings, fleets, caller);
    using validity = access.validity(caller);
    validity.signal.addEventListener('abort', () => response.destroy(), { once: true });
    request.auth = { token: '', clientId: caller.caller.id, scopes: [...caller.scopes], extra: { connection } };
    await answer(request as Parameters<typeof answer>[0], response);
  };
  const server = createListening(http, (request, response) => {
    serve(request, response).catch((error: Error) => {
      onerror(error);
      response.destroy();
    });
  });
  try {
    onListening(urlOf(http, await listen(server, http)));
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await handler.close();
    server.close();
    server.closeAllConnections();
    access.close();
  }
}

const connectionOf = (info: AuthInfo | undefined) => info?.extra?.connection as HttpConnection;

function createListening({ tls }: HttpSettings, listener: RequestListener) {
  return tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
}

/** Listens, and returns the port. */
async function listen(server: ReturnType<typeof createServer>, { host, port }: HttpSettings): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
    throw new ShellfleetError(
      'COMMAND_INVALID',
      `Port ${port} of ${host} cannot be listened on (${cause.code}). Name another with --port, or 0 for a free one.`,
    );
  });
  return (server.address() as AddressInfo).port;
}

function urlOf({ host, tls }: HttpSettings, port: number): string {
  return `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}${MCP_PATH}`;
}

/** Answers a refused request as JSON-RPC, with our code. The body of the request is not read. */
function refuse(response: ServerResponse, { status, code, message }: RefusedRequest): void {
  const error = { code: -32_000, message: `${code}: ${message}`, data: { code } };
  response.writeHead(status, {
    'content-type': 'application/json',
    connection: 'close',
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...(status === 503 ? { 'retry-after': '1' } : {}),
  });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
}
