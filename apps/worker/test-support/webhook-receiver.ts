import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

interface Received {
  headers: IncomingHttpHeaders;
  path: string;
  body: string;
}

/** Answers every request with `status`, until that is changed. Without one it never answers. */
export interface WebhookReceiver extends AsyncDisposable {
  port: number;
  received: Received[];
  status: number | undefined;
  headers: Record<string, string>;
}

/** `port`: default: a free one. */
export async function startWebhookReceiver(port = 0): Promise<WebhookReceiver> {
  const receiver: Omit<WebhookReceiver, 'port'> = {
    received: [],
    status: 204,
    headers: {},
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    receiver.received.push({ headers: request.headers, path: request.url ?? '', body });
    if (receiver.status !== undefined) response.writeHead(receiver.status, receiver.headers).end();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(receiver, { port: (server.address() as AddressInfo).port });
}
