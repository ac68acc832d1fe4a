import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SessionEgress } from './session-egress.ts';

// Sends the proxy what a session may send instead of requests. Behind it are a site, and a server that never replies.

const HEAD_WITHIN_MS = 300;

let directory: string;
let path: string;
let site: Server;
let silent: NetServer;
let silentConnections = 0;
let ports: { site: number; silent: number };
let egress: SessionEgress;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-hostile-'));
  path = join(directory, 'egress');
  site = createServer((_incoming, answer) => answer.end('the site'));
  silent = createNetServer((socket) => {
    silentConnections += 1;
    socket.on('error', () => {});
  });
  ports = { site: await listenOn(site), silent: await listenOn(silent) };
  const hosts = [`site.test:${ports.site}`, `site.test:${ports.silent}`];
  egress = new SessionEgress({
    rules: {
      ...{ allowedHosts: hosts, hosts },
      mayConnectTo: () => true,
      resolveName: async () => [{ address: '127.0.0.1', family: 4 as const }],
    },
    onRequest: () => {},
    headWithinMs: HEAD_WITHIN_MS,
  });
  await egress.listen(path);
  egress.begin('limited');
});

afterAll(async () => {
  egress.close();
  site.close();
  silent.close();
  await rm(directory, { recursive: true });
});

async function listenOn(server: NetServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}

const dial = (options: object = {}): Socket => connect({ path, ...options }).on('error', () => {});

/** Returns the reply until the connection ends. */
async function talk(bytes: string | Buffer, socket = dial()): Promise<string> {
  let received = '';
  socket.on('data', (data) => {
    received += String(data);
  });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.write(bytes);
  await closed;
  return received;
}

const isServed = () =>
  expect(talk(`GET http://site.test:${ports.site}/ HTTP/1.1\r\nHost: x\r\n\r\n`)).resolves.toMatch(
    /^HTTP\/1.1 200 .*the site/s,
  );

describe('a hostile client of the proxy', () => {
  test.each([
    ['garbage', Buffer.from([0, 1, 2, 255, 13, 10, 13, 10])],
    ['TLS', Buffer.from('16030100c8010000c40303', 'hex')],
    ['a head without an end', `GET http://site.test/ HTTP/1.1\r\nX: ${'x'.repeat(20_000)}`],
    ['a name of 16,000 characters', `CONNECT ${'a.'.repeat(8_000)}test:443 HTTP/1.1\r\n\r\n`],
    ['ten thousand headers', `GET http://site.test/ HTTP/1.1\r\n${'A: b\r\n'.repeat(10_000)}\r\n`],
    ['a request for a server', 'GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n'],
    ['another scheme', 'GET ftp://site.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['two lengths', 'POST http://site.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx'],
    [
      'a length and chunks',
      'POST http://site.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['CONNECT to nothing', 'CONNECT  HTTP/1.1\r\n\r\n'],
    ['CONNECT to a line break', 'CONNECT a\tb:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['CONNECT to port 0', 'CONNECT site.test:0 HTTP/1.1\r\n\r\n'],
    ['CONNECT to a mail server', 'CONNECT site.test:25 HTTP/1.1\r\n\r\n'],
  ])('gets 4xx or a closed connection for %s, and the proxy survives', async (_name, bytes) => {
    expect(await talk(bytes)).toMatch(/^(?:HTTP\/1.1 4\d\d |$)/);
    await isServed();
  });

  test.each(['', 'GET http://si', 'CONNECT site.test:443 HTTP/1.1\r\nX: '])(
    'is disconnected when its head does not end: %j',
    async (begin) => {
      const socket = dial();
      const drip = setInterval(() => socket.write(begin === '' ? '' : 'x'), 20);
      expect(await talk(begin, socket)).toMatch(/^(?:HTTP\/1.1 408 .*|)$/s);
      clearInterval(drip);
      await isServed();
    },
  );

  test.each(['1.0', '1.1'])(
    'opens one outward connection with many requests over one connection (HTTP/%s)',
    async (version) => {
      const before = silentConnections;
      const request = `GET http://site.test:${ports.silent}/ HTTP/${version}\r\nHost: x\r\nConnection: keep-alive\r\n\r\n`;
      expect(await talk(request.repeat(500))).toBe('');
      expect(silentConnections - before).toBeLessThanOrEqual(1);
      await isServed();
    },
  );

  test('gets one reply per connection', async () => {
    const request = `GET http://site.test:${ports.site}/ HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n`;
    expect(await talk(request)).toMatch(/^HTTP\/1.1 200 OK\r\n.*\r\nConnection: close\r\n/is);
  });

  test('takes up no memory with any number of refused tunnels', async () => {
    for (let round = 0; round < 3; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 60 }, () => talk('CONNECT evil.net:443 HTTP/1.1\r\n\r\n')),
      );
      expect(answers.filter((answer) => !answer.startsWith('HTTP/1.1 403 '))).toEqual([]);
    }
    await isServed();
  });

  test('is disconnected when it keeps its half of the connection open after a refusal', async () => {
    const socket = dial({ allowHalfOpen: true });
    socket.write('CONNECT evil.net:443 HTTP/1.1\r\n\r\n');
    socket.resume();
    await once(socket, 'end');
    const broken = once(socket, 'error');
    const drip = setInterval(() => socket.write('x'), 20);
    expect(await broken).toMatchObject([{ code: 'EPIPE' }]);
    clearInterval(drip);
  });

  test('leaves no connection when it disconnects while its name is resolved', async () => {
    const found = Promise.withResolvers<{ address: string; family: 4 }[]>();
    const asked = Promise.withResolvers<void>();
    const own = new SessionEgress({
      rules: {
        ...{ allowedHosts: [`site.test:${ports.silent}`], hosts: [`site.test:${ports.silent}`] },
        mayConnectTo: () => true,
        resolveName() {
          asked.resolve();
          return found.promise;
        },
      },
      onRequest: () => {},
    });
    await own.listen(join(directory, 'own'));
    own.begin('limited');
    const socket = dial({ path: join(directory, 'own') });
    socket.write(`GET http://site.test:${ports.silent}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
    await asked.promise;
    socket.destroy();
    await once(socket, 'close');
    const [outward] = (await Promise.all([
      once(silent, 'connection'),
      Promise.resolve().then(() => found.resolve([{ address: '127.0.0.1', family: 4 }])),
    ]).then(([arrived]) => arrived)) as [Socket];
    if (!outward.closed) await once(outward.resume(), 'close');
    own.close();
  });

  test('leaves a working proxy when it disconnects during a request or a tunnel', async () => {
    for (const bytes of [
      'GET htt',
      `CONNECT site.test:${ports.silent} HTTP/1.1\r\n\r\n`,
      `GET http://site.test:${ports.site}/ HTTP/1.1\r\n\r\n`,
    ])
      await new Promise<void>((resolve) => {
        const socket = dial();
        socket.write(bytes, () => socket.destroy());
        socket.on('close', () => resolve());
      });
    await isServed();
  });
});
