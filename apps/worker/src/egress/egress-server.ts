import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { BUFFER_BYTES } from './connect-out.ts';
import { type Destination, isProxyRefusal, type ProxyRefusal, parseDestination } from './destination.ts';

// The proxy over HTTP: CONNECT, and requests with an absolute http:// URL. A session may send anything.
//
// EGRESS-HTTP-1. No input throws out of a listener, and each connection holds a bounded number of bytes.
// EGRESS-HTTP-2. Every refusal has the destination and the reason in its status line and in its body.
// EGRESS-HTTP-3. A connection has one request, so there are never more connections outward than inward. A client that
//     sends a second request before the reply is cut off; no ordinary client does so.
// EGRESS-HTTP-4. A request is passed on with its length and with the host that was checked, whatever Connection names.
//     The server behind the proxy reads only the checked request, and no part of a body as a second request.

const HEAD_BYTES = 16 * 1024;
const HEAD_WITHIN_MS = 10_000;
const IDLE_MS = 600_000;
/** Time for a refused client to read its reply and close. */
const LINGER_MS = 1_000;
export const CONNECTIONS = 128;
/** Headers that belong to one connection and not to the request (RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  'connection',
  'expect',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** Headers that decide where a message ends and whom it is for, so Connection cannot name them (EGRESS-HTTP-4). */
const MESSAGE_HEADERS = ['content-length', 'host'];

/** Opens the outward connection for a request, or returns why it is refused. */
export type OpenOutward = (
  destination: Destination,
  client: Socket,
  /** Value of the header Proxy-Authorization. */
  authorization: string | undefined,
) => Promise<Socket | ProxyRefusal>;

export interface EgressServerOptions {
  headWithinMs?: number | undefined;
  /** Most connections at a time. Default: those of one session. */
  connections?: number;
}

export function createEgressServer(
  open: OpenOutward,
  { headWithinMs = HEAD_WITHIN_MS, connections = CONNECTIONS }: EgressServerOptions = {},
): Server {
  const options = {
    maxHeaderSize: HEAD_BYTES,
    headersTimeout: headWithinMs,
    // Only the head has a time limit: an upload may take as long as its command.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(headWithinMs, 1_000),
    highWaterMark: BUFFER_BYTES,
  };
  const asked = new WeakSet<Socket>();
  /** Tells whether a request is the first of its connection, and disconnects otherwise (EGRESS-HTTP-3). */
  const isFirst = (client: Socket) => {
    const isNew = !asked.has(client);
    asked.add(client);
    if (!isNew) client.destroy();
    return isNew;
  };
  const server = createServer(options, (incoming, answer) => {
    answer.shouldKeepAlive = false;
    if (isFirst(incoming.socket)) forward(incoming, answer, open).catch(() => answer.destroy());
  });
  server.maxConnections = connections;
  server.on('connection', (client) => client.on('error', () => {}).setTimeout(IDLE_MS, () => client.destroy()));
  server.on('connect', (incoming: IncomingMessage, client: Socket, head: Buffer) => {
    if (isFirst(client)) tunnel(incoming, client, head, open).catch(() => client.destroy());
  });
  server.on('clientError', ({ code }: NodeJS.ErrnoException, client) => {
    const refusal: ProxyRefusal =
      code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? { status: 408, reason: 'its head took too long' }
        : { status: 400, reason: 'this is not a request for a proxy' };
    if (client.writable) client.end(toText(refusal, 'the request'));
    else client.destroy();
  });
  return server;
}

async function tunnel(
  { url = '', headers }: IncomingMessage,
  client: Socket,
  head: Buffer,
  open: OpenOutward,
): Promise<void> {
  const destination = parseDestination(url);
  const outward = isProxyRefusal(destination)
    ? destination
    : await open(destination, client, headers['proxy-authorization']);
  if (isProxyRefusal(outward)) {
    // The client's end of the connection is noticed only while the connection is read.
    client.end(toText(outward, url)).resume();
    setTimeout(() => client.destroy(), LINGER_MS).unref();
    return;
  }
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  outward.write(head);
  outward.setTimeout(IDLE_MS, () => outward.destroy());
  pipeline(client, outward, client, () => {
    client.destroy();
    outward.destroy();
  });
}

async function forward(incoming: IncomingMessage, answer: ServerResponse, open: OpenOutward): Promise<void> {
  const { authority, path } =
    /^http:\/\/(?:[^/?#@]*@)?(?<authority>[^/?#@]+)(?<path>[^#]*)/i.exec(incoming.url ?? '')?.groups ?? {};
  if (authority === undefined || path === undefined) {
    return refuse(
      answer,
      { status: 400, reason: 'a request needs an absolute http:// URL, or CONNECT' },
      'the request',
    );
  }
  // The header that names a coding inside the chunks would be lost.
  if (!['chunked', undefined].includes(incoming.headers['transfer-encoding']?.toLowerCase()))
    return refuse(answer, { status: 400, reason: 'its Transfer-Encoding is another than chunked' }, authority);
  const destination = parseDestination(authority, 80);
  const outward = isProxyRefusal(destination)
    ? destination
    : await open(destination, incoming.socket, incoming.headers['proxy-authorization']);
  if (isProxyRefusal(outward)) return refuse(answer, outward, authority);
  outward.setTimeout(IDLE_MS, () => outward.destroy());
  answer.on('close', () => outward.destroy());
  const onward = request({
    createConnection: () => outward,
    method: incoming.method,
    path: path.startsWith('/') ? path : `/${path}`,
    headers: { ...onwardHeaders(incoming), ...framingOf(incoming), host: authority, connection: 'close' },
    setHost: false,
    maxHeaderSize: HEAD_BYTES,
  });
  pipeline(incoming, onward, () => {});
  onward.on('error', () => refuse(answer, { status: 502, reason: 'it broke the connection off' }, authority));
  onward.on('response', (response) => {
    try {
      answer.writeHead(response.statusCode ?? 502, response.statusMessage, onwardHeaders(response));
      pipeline(response, answer, () => {});
    } catch {
      refuse(answer, { status: 502, reason: 'its answer is not valid' }, authority);
    }
  });
}

/** Returns the framing header, if any (EGRESS-HTTP-4). The parser refuses two. An unknown length stays unknown. */
function framingOf({ headers }: IncomingMessage): Record<string, string> {
  return headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' };
}

function onwardHeaders({ headers, headersDistinct }: IncomingMessage): Record<string, string[]> {
  const named = (headers.connection ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => !MESSAGE_HEADERS.includes(name));
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  return Object.fromEntries(Object.entries(headersDistinct).filter(([name]) => !dropped.has(name))) as Record<
    string,
    string[]
  >;
}

function refuse(answer: ServerResponse, refusal: ProxyRefusal, what: string): void {
  if (answer.headersSent) {
    answer.destroy();
    return;
  }
  answer.writeHead(refusal.status, toLine(refusal, what), { 'content-type': 'text/plain', ...challengeFor(refusal) });
  answer.end(`${toSentence(refusal, what)}\n`);
}

function toText(refusal: ProxyRefusal, what: string): string {
  const body = `${toSentence(refusal, what)}\n`;
  const challenge = Object.entries(challengeFor(refusal)).map(([name, value]) => `${name}: ${value}`);
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  const head = ['Content-Type: text/plain', 'Connection: close', length, ...challenge];
  return [`HTTP/1.1 ${refusal.status} ${toLine(refusal, what)}`, ...head, '', body].join('\r\n');
}

/** Returns the header with which a client learns that it must prove itself. */
function challengeFor({ status }: ProxyRefusal): Record<string, string> {
  return status === 407 ? { 'Proxy-Authenticate': 'Basic realm="shellfleet"' } : {};
}

function toSentence({ reason }: ProxyRefusal, what: string): string {
  return `Shellfleet does not let ${toPrintable(what)} through: ${reason}.`;
}

/** Returns the status line, the only part that many clients show. */
function toLine({ reason }: ProxyRefusal, what: string): string {
  return `${toPrintable(what)} refused: ${reason}`;
}

/** Escapes what the client sent, because the text goes back to it. */
function toPrintable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 260);
}
