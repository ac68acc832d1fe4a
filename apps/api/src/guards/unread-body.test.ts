import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { endUnreadBody } from './unread-body.ts';

let server: Server;

async function send(listener: RequestListener, length: number): Promise<Socket> {
  server = createServer(listener).listen(0, '127.0.0.1');
  server.on('request', (request, response) => endUnreadBody(request, response, 50));
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {}).write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`);
  return socket;
}

/** Resolves when the connection is closed, also by a reset. */
const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

describe('a body that is not read', () => {
  const refuse: RequestListener = (_request, response) => void response.writeHead(401).end();

  test('ends its connection some time after the reply, however slowly it is sent', async () => {
    const socket = await send(refuse, 1_000_000);
    const sending = setInterval(() => socket.write('x'), 5);
    const [reply] = await once(socket, 'data');
    expect(String(reply)).toContain(' 401 ');
    await closed(socket);
    clearInterval(sending);
  });

  test('ends its connection when a handler has stopped to read it', async () => {
    const socket = await send(async (request, response) => {
      for await (const _piece of request) break;
      response.writeHead(400).end();
    }, 10_000_000);
    socket.write(Buffer.alloc(10_000_000));
    socket.resume();
    await closed(socket);
  });

  test('leaves the connection open when it arrives in time', async () => {
    const socket = await send(refuse, 1);
    await once(socket, 'data');
    socket.write('x');
    await new Promise((resolve) => setTimeout(resolve, 100));
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const [reply] = await once(socket, 'data');
    expect(String(reply)).toContain(' 401 ');
  });
});
