import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net';
import { createSealKey, type EgressStatement, egressKeyOf, signEgress } from '@shellfleet/sealing';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EgressProxy } from './egress-proxy.ts';
import { CONNECTIONS } from './egress-server.ts';

// The proxy of all Pods on a real port. Behind it are a site and a server that never replies.

const key = egressKeyOf(createSealKey());
const lines: Record<string, unknown>[] = [];
let site: Server;
let silent: NetServer;
let ports: { site: number; silent: number; proxy: number };
let proxy: EgressProxy;

beforeAll(async () => {
  site = createServer(({ headers }, answer) => answer.end(JSON.stringify(headers)));
  silent = createNetServer((socket) => socket.on('error', () => {}));
  const [sitePort, silentPort] = [await listenOn(site), await listenOn(silent)];
  proxy = new EgressProxy({
    keys: [egressKeyOf(createSealKey()), key],
    rules: {
      hosts: [`localhost:${sitePort}`, `localhost:${silentPort}`],
      mayConnectTo: (address) => address === '127.0.0.1',
    },
    lookups: 2,
    logger: pino({ base: null, timestamp: false }, { write: (line: string) => lines.push(JSON.parse(line)) }),
  });
  ports = { site: sitePort, silent: silentPort, proxy: await proxy.listen(0) };
});

afterAll(async () => {
  await proxy.close(0);
  site.close();
  silent.close();
});

async function listenOn(server: NetServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}

/** Returns the header with a token of the session, which may reach the site and one host that no operator lists. */
function proof(session = 's', more: Partial<EgressStatement> = {}, signedWith = key): string {
  const hosts = [`localhost:${ports.site}`, `localhost:${ports.silent}`, 'unlisted.example'];
  const statement = { namespace: 'n', tenant: 't', session, hosts, expiresAt: Date.now() + 60_000, ...more };
  const userinfo = `session:${signEgress(signedWith, statement)}`;
  return `Proxy-Authorization: Basic ${Buffer.from(userinfo).toString('base64')}\r\n`;
}

const dial = (): Socket => connect(ports.proxy, '127.0.0.1').on('error', () => {});
const toConnect = (authority: string, header: string) =>
  `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${header}\r\n`;

/** Returns the reply until the connection ends. */
async function talk(request: string): Promise<string> {
  const socket = dial();
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).write(request);
  await once(socket, 'close');
  return Buffer.concat(chunks).toString();
}

const getSite = (header: string) => {
  const authority = `localhost:${ports.site}`;
  return talk(`GET http://${authority}/a HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n${header}\r\n`);
};

describe('the egress proxy of Pods', () => {
  test('lets a session with a token through, and passes the token to nobody', async () => {
    const reply = await getSite(proof());
    expect(reply).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(reply).toContain(`"host":"localhost:${ports.site}"`);
    expect(reply).not.toContain('uthorization');
  });

  test('tunnels for a session with a token', async () => {
    const authority = `localhost:${ports.site}`;
    const inner = `GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
    expect(await talk(toConnect(authority, proof()) + inner)).toMatch(
      /Connection established\r\n\r\nHTTP\/1\.1 200 OK/,
    );
  });

  // EGRESS-POD-1
  test.each<[string, () => string]>([
    ['no token', () => ''],
    ['a token of another fleet', () => proof('s', {}, egressKeyOf(createSealKey()))],
    ['a token that has expired', () => proof('s', { expiresAt: Date.now() - 1 })],
    ['a token in another scheme', () => proof().replace('Basic', 'Bearer')],
    ['no base64', () => 'Proxy-Authorization: Basic {}\r\n'],
  ])('asks for a token when there is %s', async (_what, header) => {
    for (const reply of [await getSite(header()), await talk(toConnect(`localhost:${ports.site}`, header()))]) {
      expect(reply).toMatch(/^HTTP\/1\.1 407 localhost:\d+ refused: the request has no valid token of a session\r\n/);
      expect(reply).toMatch(/Proxy-Authenticate: Basic realm="shellfleet"/i);
    }
  });

  // EGRESS-POD-2
  test.each([
    ['a host that its session does not list', 'other.example:443', /allowedHosts/],
    ['a host that the operator does not list', 'unlisted.example:443', /operator of the host does not list it/],
    ['an address', '127.0.0.1:80', /name the host/],
  ])('refuses %s', async (_what, authority, reason) => {
    expect(await talk(toConnect(authority, proof()))).toMatch(reason);
  });

  test('logs each destination with the session, and no token', async () => {
    lines.length = 0;
    await getSite(proof('logged'));
    await talk(toConnect('other.example:443', proof('logged')));
    const of = { 'shellfleet.tenant.id': 't', 'shellfleet.session.id': 'logged' };
    expect(lines).toEqual([
      { ...of, level: 30, 'server.address': 'localhost', 'server.port': ports.site, msg: 'egress.let-through' },
      {
        ...of,
        ...{ level: 40, 'server.address': 'other.example', 'server.port': 443, msg: 'egress.refused' },
        reason: "it is not among the session's sandbox.allowedHosts",
      },
    ]);
  });

  // EGRESS-POD-3
  test('bounds the connections of a session, and not those of another', async () => {
    const request = toConnect(`localhost:${ports.silent}`, proof('greedy'));
    const held = Array.from({ length: CONNECTIONS }, () => dial());
    await Promise.all(
      held.map((socket) => {
        socket.write(request);
        return once(socket, 'data');
      }),
    );
    expect(await talk(request)).toMatch(/403 localhost:\d+ refused: its session has 128 connections already/);
    expect(await getSite(proof('modest'))).toMatch(/^HTTP\/1\.1 200/);
    for (const socket of held) socket.destroy();
    await expect.poll(() => getSite(proof('greedy'))).toMatch(/^HTTP\/1\.1 200/);
  });

  test('bounds the connections of a tenant, and not those of another', async () => {
    const held: Socket[] = [];
    for (let nth = 0; nth < 512; nth += 1) {
      const socket = dial();
      socket.write(toConnect(`localhost:${ports.silent}`, proof(`many-${nth % 8}`)));
      await once(socket, 'data');
      held.push(socket);
    }
    expect(await getSite(proof('many-8'))).toMatch(/403 localhost:\d+ refused: its tenant has 512 connections already/);
    expect(await getSite(proof('s', { tenant: 'modest' }))).toMatch(/^HTTP\/1\.1 200/);
    for (const socket of held) socket.destroy();
    await expect.poll(() => getSite(proof('many-8'))).toMatch(/^HTTP\/1\.1 200/);
  });

  test('bounds the connections of an address that shows no token', async () => {
    const held = Array.from({ length: CONNECTIONS }, () => dial());
    await Promise.all(held.map((socket) => once(socket, 'connect')));
    // The proxy may notice the last of them after it is asked.
    await expect.poll(() => talk(toConnect(`localhost:${ports.site}`, proof()))).toBe('');
    for (const socket of held) socket.destroy();
    await expect.poll(() => getSite(proof())).toMatch(/^HTTP\/1\.1 200/);
  });
});
