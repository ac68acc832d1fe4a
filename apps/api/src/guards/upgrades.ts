import type { IncomingMessage } from 'node:http';

const TERMINAL = /^\/v1\/sessions\/[^/?]+\/terminal(?:\?|$)/;

/**
 * Tells whether a request asks for a WebSocket where there is one. Every other `Upgrade` is ignored, as of RFC 9110:
 * some clients offer HTTP/2 (`h2c`) with each request over plain HTTP, and expect an answer over HTTP/1.1.
 */
export function opensWebSocket({ method, url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>) {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && TERMINAL.test(url);
}
