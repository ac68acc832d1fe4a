import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAddressCheck } from './addresses.ts';
import { type EgressEvent, SessionEgress } from './session-egress.ts';

// Tests the proxy of one session on its real socket. Only this resolver finds the servers of the test.

const names: Record<string, string[]> = {
  'site.test': ['127.0.0.1'],
  'inside.test': ['127.0.0.2'],
  'mixed.test': ['127.0.0.2', '127.0.0.1'],
  'none.test': [],
};
const events: EgressEvent[] = [];
let asked: string[] = [];
let directory: string;
let path: string;
let site: Server;
let echo: NetServer;
/** Server at the address that is not listed, at the port of `echo`. */
let inside: NetServer;
let insideConnections = 0;
/** Server that continues to read when its client has closed its half. */
let waiting: NetServer;
let ports: { site: number; echo: number; waiting: number };
let egress: SessionEgress;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-egress-'));
  path = join(directory, 'egress');
  site = createServer((incoming, answer) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const { method, url, headers } = incoming;
      answer.setHeader('content-type', 'application/json');
      answer.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
    });
  });
  echo = createNetServer((socket) => socket.on('error', () => {}).pipe(socket));
  waiting = createNetServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).resume());
  inside = createNetServer((socket) => {
    insideConnections += 1;
    socket.on('error', () => {}).pipe(socket);
  });
  ports = { site: await listenOn(site), echo: await listenOn(echo), waiting: await listenOn(waiting) };
  await listenOn(inside, '127.0.0.2', ports.echo);
  const patterns = ['*.test:80', '*.test:1', ...Object.values(ports).map((port) => `*.test:${port}`)];
  egress = new SessionEgress({
    rules: {
      allowedHosts: [...patterns, 'unlisted.net'],
      hosts: patterns,
      mayConnectTo: createAddressCheck(['127.0.0.1/32'], () => []),
      async resolveName(name) {
        asked.push(name);
        return (names[name] ?? []).map((address) => ({ address, family: 4 as const }));
      },
    },
    onRequest: (event) => events.push(event),
  });
  await egress.listen(path);
});

afterAll(async () => {
  egress.close();
  site.close();
  echo.close();
  inside.close();
  waiting.close();
  await rm(directory, { recursive: true });
});

async function listenOn(server: NetServer, host = '127.0.0.1', port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  return (server.address() as { port: number }).port;
}

function dial(): Socket {
  return connect(path).on('error', () => {});
}

/** Returns the reply until the connection ends, or until it contains `enough`. */
async function talk(bytes: string | Buffer, enough?: string, socket = dial()): Promise<string> {
  let received = '';
  socket.write(bytes);
  return new Promise((resolve) => {
    socket.on('data', (data) => {
      received += String(data);
      if (enough !== undefined && received.includes(enough)) resolve(received);
    });
    socket.on('close', () => resolve(received));
  });
}

const get = (url: string) => talk(`GET ${url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
const tunnel = (authority: string, socket?: Socket) =>
  talk(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`, '\r\n\r\n', socket);

async function during<T>(network: 'limited' | 'restricted', act: () => Promise<T>): Promise<T> {
  const end = egress.begin(network);
  return act().finally(end);
}

describe('the proxy while a command runs', () => {
  test('passes on a request for a listed name, without the headers of its connection', async () => {
    const answer = await during('limited', () =>
      talk(
        `POST http://site.test:${ports.site}/a?b=c HTTP/1.1\r\nHost: other\r\nProxy-Authorization: Basic eDp5\r\nX-Mine: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody`,
      ),
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(JSON.parse(answer.split('\r\n').find((line) => line.startsWith('{')) ?? '')).toEqual({
      method: 'POST',
      url: '/a?b=c',
      headers: { host: `site.test:${ports.site}`, 'x-mine': '1', 'content-length': '4', connection: 'close' },
      body: 'body',
    });
  });

  test('opens a tunnel for CONNECT, and first sends the bytes that followed the head', async () => {
    const [head, rest] = await during('limited', async () => {
      const socket = dial();
      const all = await talk(`CONNECT site.test:${ports.echo} HTTP/1.1\r\n\r\nhello`, 'hello', socket);
      socket.destroy();
      return all.split('\r\n\r\n');
    });
    expect([head, rest]).toEqual(['HTTP/1.1 200 Connection established', 'hello']);
  });

  test.each([
    ['evil.net:443', "it is not among the session's sandbox.allowedHosts"],
    ['site.test:22', "it is not among the session's sandbox.allowedHosts"],
    ['unlisted.net:443', 'the operator of the host does not list it'],
    ['127.0.0.1:80', 'an address is not let through: name the host'],
    ['[::1]:80', 'an address is not let through: name the host'],
    ['inside.test:80', 'it is at a private address, and the operator of the host does not list that'],
  ])('refuses CONNECT %s, with the reason in status line and body', async (authority, reason) => {
    const answer = await during('limited', () => talk(`CONNECT ${authority} HTTP/1.1\r\n\r\n`));
    const [head = '', body] = answer.split('\r\n\r\n');
    expect(head.split('\r\n')[0]).toBe(`HTTP/1.1 403 ${authority} refused: ${reason}`);
    expect(body).toBe(`Shellfleet does not let ${authority} through: ${reason}.\n`);
  });

  test('refuses a plain HTTP request with the same reason as a CONNECT', async () => {
    const answer = await during('limited', () => get('http://evil.net/'));
    expect(answer).toMatch(/^HTTP\/1.1 403 evil.net refused: it is not among the session's sandbox.allowedHosts\r\n/);
    expect(answer).toContain("Shellfleet does not let evil.net through: it is not among the session's");
  });

  test.each([
    ['none.test:80', /^HTTP\/1.1 502 none.test:80 refused: its name could not be resolved\r\n/],
    ['site.test:1', /^HTTP\/1.1 502 site.test:1 refused: it could not be reached: ECONNREFUSED\r\n/],
  ])('reports that %s does not reply', async (authority, expected) => {
    expect(await during('limited', () => talk(`CONNECT ${authority} HTTP/1.1\r\n\r\n`))).toMatch(expected);
  });

  test('resolves a name once, and never connects to a later or unlisted address', async () => {
    asked = [];
    const rebinding = await during('limited', async () => {
      const first = tunnel(`mixed.test:${ports.echo}`);
      await expect.poll(() => asked.length).toBe(1);
      names['mixed.test'] = ['127.0.0.2'];
      const head = await first;
      return [head.split('\r\n')[0], (await tunnel(`mixed.test:${ports.echo}`)).split('\r\n')[0]];
    });
    expect(rebinding[0]).toBe('HTTP/1.1 200 Connection established');
    expect(rebinding[1]).toMatch(/^HTTP\/1.1 403 /);
    expect(asked).toEqual(['mixed.test', 'mixed.test']);
    expect(insideConnections).toBe(0);
  });

  test('records only the destination of each request and the reason of a refusal', async () => {
    events.length = 0;
    await during('limited', async () => {
      await get(`http://site.test:${ports.site}/`);
      await talk('CONNECT evil.net:443 HTTP/1.1\r\nProxy-Authorization: Basic c2VjcmV0\r\n\r\n');
      await get('http://user:secret@[::1]/?token=secret');
      await talk('CONNECT user:secret@evil.net:443 HTTP/1.1\r\n\r\n');
    });
    expect(events).toEqual([
      { name: 'site.test', port: ports.site },
      { name: 'evil.net', port: 443, refusal: "it is not among the session's sandbox.allowedHosts" },
      { name: '[::1]', port: 80, refusal: 'an address is not let through: name the host' },
    ]);
  });
});

describe('the lifetime of connections through the proxy', () => {
  test('ends a connection with the command that opened it', async () => {
    const socket = dial();
    const closed = new Promise((resolve) => socket.on('close', resolve));
    const end = egress.begin('limited');
    expect(await tunnel(`site.test:${ports.echo}`, socket)).toContain('200');
    expect(await talk('still here', 'still here', socket)).toContain('still here');
    end();
    await closed;
  });

  test('ends a half-closed connection with its command', async () => {
    const arrived = once(waiting, 'connection') as Promise<[Socket]>;
    const socket = dial();
    const end = egress.begin('limited');
    expect(await tunnel(`site.test:${ports.waiting}`, socket)).toContain('200');
    const [outward] = await arrived;
    socket.end();
    await once(outward, 'end');
    const closed = new Promise((resolve) => outward.on('close', resolve).on('error', () => {}));
    // The server's half has ended, so the server notices the end only when it writes.
    const drip = setInterval(() => outward.write('more'), 10);
    end();
    await closed;
    clearInterval(drip);
  });

  test('opens no connection when its command ends before its name is resolved', async () => {
    let isAsked = false;
    const pending = new SessionEgress({
      rules: {
        allowedHosts: ['site.test'],
        hosts: ['site.test'],
        mayConnectTo: () => true,
        resolveName(_name, signal) {
          isAsked = true;
          return new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(new Error('aborted'))),
          );
        },
      },
      onRequest: () => {},
    });
    const own = join(directory, 'pending');
    await pending.listen(own);
    const end = pending.begin('limited');
    const socket = connect(own).on('error', () => {});
    const closed = new Promise((resolve) => socket.on('close', resolve).resume());
    socket.write('CONNECT site.test:443 HTTP/1.1\r\n\r\n');
    await expect.poll(() => isAsked).toBe(true);
    end();
    await closed;
    pending.close();
  });

  test('passes nothing while nothing runs, even over a connection that waits', async () => {
    const early = dial();
    await new Promise((resolve) => early.once('connect', resolve));
    expect(await talk(`CONNECT site.test:${ports.echo} HTTP/1.1\r\n\r\n`)).toMatch(/403 .* no command runs/);
    await during('limited', async () => {
      expect(await tunnel(`site.test:${ports.echo}`, early)).toMatch(/403 .* no command runs/);
    });
  });

  test('a restricted command blocks the network of the whole session', async () => {
    await during('restricted', async () => {
      expect(await talk(`CONNECT site.test:${ports.echo} HTTP/1.1\r\n\r\n`)).toMatch(
        /403 .* the command that runs has no network/,
      );
    });
  });

  test("an open terminal has the session's network, except during a restricted command", async () => {
    egress.setTerminals(1);
    const own = dial();
    const closed = new Promise((resolve) => own.on('close', resolve));
    expect(await tunnel(`site.test:${ports.echo}`, own)).toContain('200');
    await during('limited', async () => {});
    expect(await talk('still here', 'still here', own)).toContain('still here');
    await during('restricted', async () => {
      await closed;
      expect(await talk(`CONNECT site.test:${ports.echo} HTTP/1.1\r\n\r\n`)).toMatch(/403/);
    });
    const next = dial();
    const nextClosed = new Promise((resolve) => next.on('close', resolve));
    expect(await tunnel(`site.test:${ports.echo}`, next)).toContain('200');
    egress.setTerminals(0);
    await nextClosed;
  });
});
