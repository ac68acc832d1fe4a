import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

interface Received {
  headers: IncomingHttpHeaders;
  path: string;
  body: string;
}

/** Answers every request with `status`, which can be changed. Without one it never answers. */
export interface WebhookReceiver extends AsyncDisposable {
  port: number;
  received: Received[];
  status: number | undefined;
  headers: Record<string, string>;
  /** Maximum of requests that were unanswered at a time. */
  mostAtOnce: number;
}

/** Listens on a free port unless one is given. */
export async function startWebhookReceiver(port = 0): Promise<WebhookReceiver> {
  const receiver: Omit<WebhookReceiver, 'port'> = {
    received: [],
    status: 204,
    headers: {},
    mostAtOnce: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  let atOnce = 0;
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    atOnce += 1;
    receiver.mostAtOnce = Math.max(receiver.mostAtOnce, atOnce);
    receiver.received.push({ headers: request.headers, path: request.url ?? '', body });
    await delay(20);
    atOnce -= 1;
    if (receiver.status !== undefined) response.writeHead(receiver.status, receiver.headers).end();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(receiver, { port: (server.address() as AddressInfo).port });
}
