import { once } from 'node:events';
import { connect } from 'node:net';
import type { Access, Principal } from '@shellfleet/access';
import type { Fleet } from '@shellfleet/client';
import { SCOPES, type Scope, ShellfleetError } from '@shellfleet/protocol';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ApiServer, createServer } from './serve.ts';

const principalOf = (name: string, scopes: readonly Scope[]): Principal => ({
  caller: { id: `key-${name}`, name },
  tenant: 'acme',
  scopes: new Set(scopes),
});
const tokens = new Map([
  ['all', principalOf('all', SCOPES)],
  ['reader', principalOf('reader', ['read'])],
]);
let away = false;
let otherFleet = false;
let conflicts: string[];
/** Answers the request with the key `slow`. */
let slow: ((principal: Principal | undefined) => void) | undefined;
const access: Access = {
  async authenticate(token) {
    if (away) throw new ShellfleetError('QUEUE_UNAVAILABLE', 'Redis gave no usable answer.');
    if (otherFleet) throw new ShellfleetError('FLEET_CONFLICT', 'Another fleet is there.');
    if (token !== 'slow') return tokens.get(token);
    return new Promise((resolve) => {
      slow = resolve;
    });
  },
  validity: () => ({ signal: new AbortController().signal, [Symbol.dispose]() {} }),
  close() {},
};
const fleet = { configuration: async () => undefined, close: async () => {} } as unknown as Fleet;

let server: ApiServer;
let url: string;
let lines: string[];

async function start(
  config: Partial<Parameters<typeof createServer>[0]['config']> = {},
  connectFleet = async () => fleet,
): Promise<void> {
  lines = [];
  conflicts = [];
  server = await createServer({
    ...{ access, fleet, connect: connectFleet, version: '1.2.3' },
    config: { tls: undefined, host: '127.0.0.1', allowedHosts: [], corsOrigins: [], rateLimit: 1_000, ...config },
    onOtherFleet: ({ message }) => void conflicts.push(message),
    log: pino({ level: 'debug' }, { write: (line) => void lines.push(line) }),
  });
  url = `http://127.0.0.1:${await server.listen(0)}`;
}

const get = (path: string, headers: Record<string, string> = {}, token = 'all') =>
  fetch(`${url}${path}`, { headers: { ...(token === '' ? {} : { authorization: `Bearer ${token}` }), ...headers } });

/** Sends bytes on a connection of their own, and returns everything that the server sends until it closes it. */
async function exchange(bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(bytes, 'latin1');
  let text = '';
  for await (const piece of socket) text += piece;
  return text;
}

/** Returns the head of a request that has a body. */
const toPost = (...headers: string[]) =>
  [
    ...['POST /v1/rules:check HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', 'Connection: close'],
    ...[...headers, '', ''],
  ].join('\r\n');

/** Sends a request whose Host is not that of its address. */
async function statusFor(host: string): Promise<string> {
  const reply = await exchange(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return reply.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length);
}

beforeEach(() => start());
afterEach(async () => {
  away = false;
  otherFleet = false;
  slow = undefined;
  await server.close();
});

describe('the server', () => {
  test('tells a caller whose key it is', async () => {
    const reply = await get('/v1/me', {}, 'reader');
    expect([reply.status, await reply.json()]).toEqual([200, { name: 'reader', tenant: 'acme', scopes: ['read'] }]);
  });

  test('answers nothing but /healthz without a key', async () => {
    const paths = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/v1/me', '/v1/nothing', '/', '/%zz'];
    const statuses = await Promise.all(paths.map(async (path) => (await get(path, {}, '')).status));
    expect(statuses).toEqual([200, 401, 401, 401, 401, 401, 401, 401]);
  });

  test('asks for a key as a bearer token, and tells nothing about a wrong one', async () => {
    const [none, wrong] = await Promise.all([get('/v1/me', {}, ''), get('/v1/me', {}, 'wrong')]);
    expect([none.status, wrong.status]).toEqual([401, 401]);
    expect([none, wrong].map(({ headers }) => headers.get('www-authenticate'))).toEqual(['Bearer', 'Bearer']);
    expect(await none.json()).toEqual(await wrong.json());
  });

  test('refuses a caller without the scope that a path needs', async () => {
    const reply = await get('/metrics', {}, 'reader');
    expect(reply.status).toBe(403);
    expect(await reply.json()).toMatchObject({ code: 'UNAUTHORIZED', context: { scopes: ['admin'] } });
    expect((await get('/metrics')).status).toBe(200);
  });

  test('reports errors as problems, with headers that are safe in a browser', async () => {
    const reply = await get('/v1/nothing');
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      'content-type': expect.stringContaining('application/problem+json'),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': 'sandbox',
      'x-request-id': expect.stringMatching(/^[\w-]{36}$/),
    });
    expect(await reply.json()).toEqual({
      type: 'urn:shellfleet:error:COMMAND_INVALID',
      title: 'Not Found',
      status: 404,
      detail: expect.stringContaining('no such path'),
      code: 'COMMAND_INVALID',
      retryable: false,
    });
  });

  test('lets a client that still sends a body read why it is refused', async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const length = 9 * 2 ** 20;
    const head = toPost('Authorization: Bearer all', `Content-Length: ${length}`).replace('Connection: close\r\n', '');
    socket.write(head);
    const [refusal] = await once(socket, 'data');
    expect(String(refusal)).toMatch(/^HTTP\/1\.1 413 .*"code":"COMMAND_INVALID"/s);
    socket.write(Buffer.alloc(length));
    socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    const [next] = await once(socket, 'data');
    expect(String(next)).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  test('names the methods of a path that another method asks for', async () => {
    const allowed = async (method: string, path: string, token = 'all') => {
      const reply = await fetch(url + path, { method, headers: { authorization: `Bearer ${token}` } });
      return [reply.status, reply.headers.get('allow')];
    };
    expect(await allowed('POST', '/v1/me')).toEqual([405, 'GET']);
    expect(await allowed('OPTIONS', '/v1/me')).toEqual([405, 'GET']);
    expect(await allowed('DELETE', '/openapi.json')).toEqual([405, 'GET']);
    expect(await allowed('POST', '/healthz')).toEqual([405, 'GET, HEAD']);
    expect(await allowed('HEAD', '/healthz')).toEqual([200, null]);
    for (const method of ['PROPFIND', 'QUERY', 'M-SEARCH', 'PURGE']) {
      expect([method, await allowed(method, '/v1/me')]).toEqual([method, [405, 'GET']]);
      expect([method, await allowed(method, '/v1/nothing')]).toEqual([method, [404, null]]);
      expect([method, await allowed(method, '/v1/me', 'wrong')]).toEqual([method, [401, null]]);
    }
  });

  test('refuses an unknown path or method before it reads the body', async () => {
    const headers = { authorization: 'Bearer all', 'content-type': 'text/xml' };
    const statusOf = async (method: string, path: string) =>
      (await fetch(url + path, { method, headers, body: '<a/>' })).status;
    for (const method of ['POST', 'PROPFIND']) {
      expect(await statusOf(method, '/v1/me')).toBe(405);
      expect(await statusOf(method, '/v1/nothing')).toBe(404);
    }
  });

  test('answers in HTTP/1.1 when a client offers another protocol, with its body', async () => {
    const body = '{"script":"ls"}';
    for (const upgrade of ['h2c', 'websocket']) {
      const lines = [
        ...['POST /v1/rules:check HTTP/1.1', 'Host: localhost', 'Authorization: Bearer all'],
        ...['Connection: Upgrade, HTTP2-Settings, close', `Upgrade: ${upgrade}`, 'HTTP2-Settings: AAEAAEAA'],
        ...['Content-Type: application/json', `Content-Length: ${body.length}`, '', body],
      ];
      expect(await exchange(lines.join('\r\n'))).toMatch(/^HTTP\/1\.1 200 OK\r\n.+"classification":"safe"/s);
    }
  });

  test.each<[string, string, string]>([
    ['no HTTP', 'GARBAGE\r\n\r\n', '400'],
    ['an unknown method', 'FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n', '400'],
    ['a request without Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', '400'],
    [
      'chunk extensions that are too large',
      `${toPost('Transfer-Encoding: chunked')}1;${'x'.repeat(20_000)}\r\n`,
      '413',
    ],
    ['an unknown expectation', toPost('Authorization: Bearer all', 'Expect: tea', 'Content-Length: 0'), '417'],
    ['headers that are too large', `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, '431'],
  ])('reports %s as a problem, and closes the connection', async (_what, bytes, status) => {
    const [head = '', body = ''] = (await exchange(bytes)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(head).toContain('content-type: application/problem+json');
    expect(head).toContain('x-content-type-options: nosniff');
    expect(JSON.parse(body)).toMatchObject({ status: Number(status), code: 'COMMAND_INVALID', retryable: false });
  });

  test('refuses an unknown expectation after the key alone, and meets 100-continue', async () => {
    expect(await exchange(toPost('Expect: tea', 'Content-Length: 0'))).toMatch(/^HTTP\/1\.1 401 /);
    const body = '{"script":"ls"}';
    const head = toPost('Authorization: Bearer all', 'Expect: 100-continue', `Content-Length: ${body.length}`);
    expect(await exchange(head + body)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
  });

  test('takes an empty body of JSON for no body', async () => {
    const send = (path: string) =>
      fetch(url + path, {
        method: 'POST',
        headers: { authorization: 'Bearer all', 'content-type': 'application/json' },
        body: '',
      });
    await server.close();
    const cancel = vi.fn(async () => true);
    await start({}, async () => ({ ...fleet, command: async () => ({ cancel }) }) as unknown as Fleet);
    expect((await send('/v1/commands/x/cancel')).status).toBe(200);
    expect(cancel).toHaveBeenCalledWith(undefined);
    expect((await send('/v1/rules:check')).status).toBe(400);
  });

  test.each(['application/json', 'application/json; charset=iso-8859-1'])(
    'refuses a body of %s that is not UTF-8, and replaces no byte',
    async (type) => {
      const send = (script: string, encoding: BufferEncoding) =>
        fetch(`${url}/v1/rules:check`, {
          method: 'POST',
          headers: { authorization: 'Bearer all', 'content-type': type },
          body: Buffer.from(JSON.stringify({ script }), encoding),
        });
      expect((await send('echo é', 'utf8')).status).toBe(200);
      const reply = await send('echo é', 'latin1');
      expect([reply.status, await reply.json()]).toMatchObject([400, { detail: expect.stringContaining('UTF-8') }]);
    },
  );

  test('refuses a query that it does not know', async () => {
    const reply = await get('/v1/me?token=x');
    expect([reply.status, await reply.json()]).toMatchObject([400, { context: { issues: [{ path: 'token' }] } }]);
  });

  test('replies 503 while Redis is away, and says when to repeat the request', async () => {
    away = true;
    const reply = await get('/v1/me');
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1']);
    expect((await get('/healthz', {}, '')).status).toBe(200);
  });

  test('reports another fleet in its Redis, which it cannot serve', async () => {
    otherFleet = true;
    const reply = await get('/v1/me');
    expect([reply.status, conflicts]).toEqual([503, ['Another fleet is there.']]);
  });

  test('answers to its own names only', async () => {
    const hosts = [
      'localhost',
      'LOCALHOST:80',
      '127.0.0.2',
      '[::1]:7410',
      'evil.example',
      'localhost.evil.example',
      '',
    ];
    const statuses = [];
    for (const host of hosts) statuses.push(await statusFor(host));
    expect(statuses).toEqual(['200', '200', '200', '200', '421', '421', '421']);
    await server.close();
    await start({ allowedHosts: ['shells.example'] });
    expect(await statusFor('Shells.example:443')).toBe('200');
  });

  test('keeps the id of a request, or makes one', async () => {
    const ids = ['a-1', 'bad id'].map(async (id) => (await get('/v1/me', { 'x-request-id': id })).headers);
    const [own, made] = (await Promise.all(ids)).map((headers) => headers.get('x-request-id'));
    expect([own, made]).toEqual(['a-1', expect.stringMatching(/^[\w-]{36}$/)]);
  });

  test('limits the requests of each key in a second', async () => {
    await server.close();
    await start({ rateLimit: 3 });
    const statuses = [];
    for (let call = 0; call < 5; call++) statuses.push((await get('/v1/me')).status);
    expect(statuses).toContain(429);
    expect(statuses.slice(0, 3)).toEqual([200, 200, 200]);
    expect((await get('/v1/me', {}, 'reader')).status).toBe(200);
  });

  test('lets pages of listed origins alone use it', async () => {
    expect((await get('/v1/me', { origin: 'https://page.example' })).headers.has('access-control-allow-origin')).toBe(
      false,
    );
    await server.close();
    await start({ corsOrigins: ['https://page.example'] });
    const origins = ['https://page.example', 'https://evil.example'];
    const replies = await Promise.all(
      origins.map((origin) =>
        fetch(`${url}/v1/me`, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'GET' } }),
      ),
    );
    expect(replies.map(({ headers }) => headers.get('access-control-allow-origin'))).toEqual([
      'https://page.example',
      null,
    ]);
    expect(replies.map(({ headers }) => headers.get('access-control-allow-credentials'))).toEqual([null, null]);
  });

  test('lets pages of listed origins read why they are refused', async () => {
    await server.close();
    await start({ corsOrigins: ['https://page.example'] });
    const reply = await get('/v1/me', { origin: 'https://page.example' }, 'wrong');
    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([401, 'https://page.example']);
    const options = await fetch(`${url}/v1/me`, { method: 'OPTIONS' });
    expect([options.status, await options.text()]).toEqual([204, '']);
  });

  test('logs a request without its key and its query', async () => {
    await get('/v1/me?secret=1');
    await expect.poll(() => lines.length).toBe(1);
    expect(lines[0]).not.toMatch(/secret|Bearer/);
    expect(JSON.parse(lines[0] as string)).toMatchObject({
      'http.route': '/v1/me',
      'http.response.status_code': 400,
      'shellfleet.tenant.id': 'acme',
      caller: 'key-all',
      msg: 'request.ended',
    });
  });

  test('ends what it has begun when it stops, and replies 503 to everything else', async () => {
    const begun = get('/v1/me', {}, 'slow');
    await expect.poll(() => slow).toBeDefined();
    const drained = server.drain(10_000);
    const refused = await Promise.all([get('/healthz', {}, ''), get('/v1/me')]);
    expect(refused.map(({ status }) => status)).toEqual([503, 503]);
    expect(refused.map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1']);
    slow?.(tokens.get('all'));
    expect((await begun).status).toBe(200);
    await drained;
    await expect(get('/healthz')).rejects.toThrow();
  });

  test('cancels the call of a tool whose client left before its fleet was there', async () => {
    const connecting = Promise.withResolvers<Fleet>();
    const called = Promise.withResolvers<AbortSignal>();
    const call = async (_name: string, _args: unknown, { signal }: { signal: AbortSignal }) => called.resolve(signal);
    await server.close();
    const connectFleet = vi.fn(() => connecting.promise);
    await start({}, connectFleet);
    const leaving = new AbortController();
    const headers = { authorization: 'Bearer all' };
    const left = fetch(`${url}/v1/tools/x/call`, { method: 'POST', headers, signal: leaving.signal });
    await expect.poll(() => connectFleet.mock.calls.length).toBe(1);
    leaving.abort();
    await expect(left).rejects.toThrow();
    await expect.poll(() => lines.join('')).toContain('"left":true');
    connecting.resolve({ tools: { call }, close: async () => {} } as unknown as Fleet);
    expect((await called.promise).aborted).toBe(true);
  });

  test('gives up what does not end in time when it stops', async () => {
    const begun = get('/v1/me', {}, 'slow');
    await expect.poll(() => slow).toBeDefined();
    await Promise.all([server.drain(50), expect(begun).rejects.toThrow()]);
  });
});

describe('the OpenAPI document', () => {
  test('describes every route with its scope, and the error', async () => {
    const reply = await get('/openapi.json', {}, 'reader');
    const document = (await reply.json()) as { openapi: string; paths: Record<string, object>; components: object };
    expect([reply.headers.get('content-type'), document.openapi]).toEqual(['application/json; charset=utf-8', '3.1.0']);
    expect(document.paths['/v1/me']).toMatchObject({
      get: {
        operationId: 'getMe',
        description: 'Any key may do this.',
        responses: {
          200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Me' } } } },
          401: { $ref: '#/components/responses/Problem-401' },
        },
      },
    });
    expect(document.components).toMatchObject({
      schemas: { Me: { type: 'object' }, Problem: { type: 'object' } },
      responses: {
        'Problem-401': {
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
    });
  });
});
