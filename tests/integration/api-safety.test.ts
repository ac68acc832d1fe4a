import { request } from 'node:http';
import type { Fleet, Scope } from '@shellfleet/client';
import { SCOPES } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiOperation, readOperations, toRealPath } from '../support/api/api-operations.ts';
import { type ApiProcess, startApiProcess } from '../support/api/api-process.ts';
import { startIssuer, type TestIssuer } from '../support/api/test-issuer.ts';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { untilFound } from '../support/until.ts';

// Promise: nobody gets anything from the servers without a key that works and has the scope; a revoked key is refused
// by every server within a second; no tenant sees or changes what another one has.

const ORIGIN = 'https://app.example';
const MARK = 'mark-of-the-first-tenant';

let stage: ClientStage;
let fleet: Fleet;
let issuer: TestIssuer;
/** Two servers of one fleet. Pages may use the second one, which also has a further name and accepts an issuer. */
let plain: ApiProcess;
let open: ApiProcess;
let operations: ApiOperation[];
/** What the first tenant has, by area. */
let ids: Record<string, string>;

const createKey = async (scopes: readonly Scope[], tenant = 'default') =>
  (await fleet.keys.create({ name: 'test', scopes: [...scopes], tenant })).key;

beforeAll(async () => {
  stage = await setClientStage();
  [issuer] = await Promise.all([startIssuer(), stage.startHost()]);
  const place = { redisUrl: stage.own.url, namespace: stage.namespace, sealKey: stage.sealKey };
  [fleet, plain, open] = await Promise.all([
    stage.connect(),
    startApiProcess(place),
    startApiProcess(place, {
      ...{ SHELLFLEET_API_CORS_ORIGINS: ORIGIN, SHELLFLEET_API_ALLOWED_HOSTS: 'fleet.example' },
      ...{ SHELLFLEET_OIDC_ISSUER: issuer.url, SHELLFLEET_OIDC_AUDIENCE: 'fleet', SHELLFLEET_OIDC_TENANT: 'default' },
    }),
  ]);
  operations = await readOperations(plain.url, await createKey(['read']));
  const session = await fleet.session('first', { labels: { mark: MARK } });
  const command = await session.submit(`echo ${MARK}; sleep 600`);
  await untilFound('the command runs', async () => (await session.info()).runningCommandId === command.id);
  await (await fleet.session('asks')).submit(`ask ${MARK}`);
  const [question] = await untilFound('a question', async () => {
    const found = await fleet.approvals.list();
    return found.length === 1 && found;
  });
  await fleet.batches.submit([{ id: MARK, script: 'true' }], { name: 'nightly' });
  ids = {
    ...{ sessions: 'first', commands: command.id, approvals: question?.id ?? '', batches: 'nightly' },
    ...{ tools: 'unknown', hosts: 'host-1', path: 'workspace/f' },
  };
});
afterAll(async () => {
  for (const server of [plain, open]) await server?.[Symbol.asyncDispose]();
  issuer?.[Symbol.dispose]();
  await stage?.[Symbol.asyncDispose]();
});

const toAuthorization = (key: string) => ({ authorization: `Bearer ${key}` });

interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** Sends a request, and reads its reply for at most a second, because some replies are streams. */
async function send(url: string, method: string, headers: Record<string, string> = {}, body?: string): Promise<Answer> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(1_000);
  const reply = await fetch(url, {
    method,
    headers: { ...type, ...headers },
    signal,
    ...(body === undefined ? {} : { body }),
  });
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const piece of reply.body ?? []) text += decoder.decode(piece as Uint8Array, { stream: true });
  } catch (error) {
    if ((error as Error).name !== 'TimeoutError') throw error;
  }
  return { status: reply.status, headers: reply.headers, text };
}

type RequestHeaders = Record<string, string>;

/** Sends a request to every operation, and returns those whose replies are not as they should be. */
async function findOthers(
  isRight: (answer: Answer, operation: ApiOperation) => boolean,
  headersOf: (operation: ApiOperation) => Promise<RequestHeaders> | RequestHeaders,
  { query = '', of = operations } = {},
): Promise<string[]> {
  const answers = of.map(async (operation) => {
    const path = toRealPath(operation, ids);
    const answer = await send(plain.url + path + query, operation.method, await headersOf(operation));
    const line = `${operation.method} ${path}: ${answer.status} ${answer.text.slice(0, 100)}`;
    return isRight(answer, operation) ? [] : [line];
  });
  return (await Promise.all(answers)).flat();
}

const isSafeInBrowsers = ({ headers }: Answer) =>
  headers.get('content-security-policy') === 'sandbox' &&
  headers.get('x-content-type-options') === 'nosniff' &&
  headers.get('cache-control') === 'no-store' &&
  headers.get('set-cookie') === null;
const isRefused = (answer: Answer) =>
  answer.status === 401 &&
  answer.headers.get('www-authenticate') === 'Bearer' &&
  answer.headers.get('content-type')?.startsWith('application/problem+json') === true &&
  isSafeInBrowsers(answer);

describe('every route', () => {
  test('is in the document, with all methods of its path', async () => {
    const headers = toAuthorization(await createKey(['read']));
    for (const [path, own] of Map.groupBy(operations, (one) => toRealPath(one, ids))) {
      if (!path.startsWith('/v1/')) continue;
      const reply = await send(plain.url + path, 'PATCH', headers);
      expect([path, reply.status, reply.headers.get('allow')?.split(', ').sort()]).toEqual([
        ...[path, 405, own.map(({ method }) => method).sort()],
      ]);
    }
    expect(operations.length).toBeGreaterThan(35);
    expect(new Set(operations.flatMap(({ scopes }) => scopes))).toEqual(new Set(SCOPES));
  });

  test('is refused without a key, and with a key that does not work', async () => {
    const [working, revoked, other] = [
      await createKey(SCOPES),
      await createKey(SCOPES),
      await setClientStage(stage.own),
    ];
    await fleet.keys.revoke(revoked.slice(4, 20));
    const soon = new Date(Date.now() + 20);
    const expired = await fleet.keys.create({ name: 'test', scopes: [...SCOPES], expiresAt: soon });
    const elsewhere = await (await other.connect()).keys.create({ name: 'test', scopes: [...SCOPES] });
    await expect.poll(() => Date.now()).toBeGreaterThan(soon.getTime());
    const wrong = `${working.slice(0, -43)}${'x'.repeat(43)}`;
    const tries: Record<string, string>[] = [
      {},
      ...['', 'x', wrong, revoked, expired.key, elsewhere.key, 'e30.e30.e30', `${working}x`].map(toAuthorization),
      { authorization: working },
      { authorization: `Basic ${Buffer.from(`key:${working}`).toString('base64')}` },
      { cookie: `key=${working}; authorization=Bearer ${working}` },
      { 'x-api-key': working },
    ];
    for (const headers of tries)
      expect(await findOthers(isRefused, () => headers), JSON.stringify(headers)).toEqual([]);
    expect(await findOthers(isRefused, () => ({}), { query: `?access_token=${working}&key=${working}` })).toEqual([]);
    await other[Symbol.asyncDispose]();
  });

  test('is refused with every scope but those that it names', async () => {
    const keys = new Map<string, Promise<string>>();
    const keyWithout = (scopes: readonly Scope[]) => {
      const others = SCOPES.filter((scope) => !scopes.includes(scope));
      const key = keys.get(others.join()) ?? createKey(others);
      keys.set(others.join(), key);
      return key;
    };
    const of = operations.filter(({ scopes }) => scopes.length > 0);
    const isForbidden = ({ status, text }: Answer, { method, scopes }: ApiOperation) => {
      // A reply to HEAD has no body.
      if (status !== 403 || method === 'HEAD') return status === 403;
      const { code, context } = JSON.parse(text);
      return code === 'UNAUTHORIZED' && String(context.scopes) === String(scopes);
    };
    expect(
      await findOthers(isForbidden, async ({ scopes }) => toAuthorization(await keyWithout(scopes)), { of }),
    ).toEqual([]);
  });
});

describe('a key of another tenant', () => {
  const BODIES: Record<string, object> = {
    '/v1/sessions/{id}/commands': { script: 'echo other' },
    '/v1/run': { script: 'echo other' },
    '/v1/rules:check': { script: 'echo other' },
    '/v1/batches': { name: 'nightly', tasks: [{ id: 'other', script: 'true' }] },
  };
  const ofTenant = () => operations.filter(({ scopes }) => !scopes.includes('admin'));

  /** What the first tenant has, without what passes by itself. */
  async function snapshot(): Promise<unknown> {
    const session = await fleet.attach('first');
    const { state, epoch, runningCommandId, labels } = (await session?.info()) ?? {};
    const questions = (await fleet.approvals.list()).map(({ id, state, count }) => ({ id, state, count }));
    const batches = (await fleet.batches.list()).map(({ name, state }) => ({ name, state }));
    return { state, epoch, runningCommandId, labels, questions, batches };
  }

  test('reads nothing, changes nothing, and finds nothing of the first tenant', async () => {
    const before = await snapshot();
    const headers = toAuthorization(await createKey(['submit', 'read', 'approve'], 'other'));
    const reading = ofTenant().filter(({ method }) => method === 'GET' || method === 'HEAD');
    // A terminal is opened by a WebSocket only, so the route looks at no session for another request.
    const statusOf = (path: string) => (path.endsWith('/terminal') ? 426 : path.includes('{') ? 404 : 200);
    const isHidden = (answer: Answer, { path }: ApiOperation) =>
      answer.status === statusOf(path) &&
      ![MARK, ids.approvals ?? MARK].some((text) => answer.text.includes(text)) &&
      isSafeInBrowsers(answer);
    expect(await findOthers(isHidden, () => headers, { of: reading })).toEqual([]);
    for (const operation of ofTenant().filter((one) => !reading.includes(one))) {
      const body = JSON.stringify(BODIES[operation.path] ?? {});
      const path = toRealPath(operation, ids);
      const { text } = await send(plain.url + path, operation.method, headers, body);
      expect(text, `${operation.method} ${path}`).not.toContain(MARK);
    }
    expect(await snapshot()).toEqual(before);
  });
});

describe('a WebSocket', () => {
  /** Returns the status of a handshake, and the subprotocol that the server has chosen. */
  const handshake = (headers: RequestHeaders, query = '', server = plain) =>
    new Promise<[number | undefined, string | undefined]>((resolve, reject) => {
      const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
      request(`${server.url}/v1/sessions/first/terminal${query}`, {
        agent: false,
        headers: { ...upgrade, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', ...headers },
      })
        .on('response', (reply) => resolve([reply.resume().statusCode, undefined]))
        .on('upgrade', ({ statusCode, headers: chosen }, socket) => {
          socket.destroy();
          resolve([statusCode, chosen['sec-websocket-protocol']]);
        })
        .on('error', reject)
        .end();
    });
  const toProtocols = (key: string) => ({
    'sec-websocket-protocol': `shellfleet.terminal.v1, shellfleet.bearer.${key}`,
  });

  test('needs a key with its scope, also as a subprotocol, which is not sent back', async () => {
    const [working, reading] = await Promise.all([createKey(['submit']), createKey(['read', 'approve', 'admin'])]);
    const wrong = `${working.slice(0, -43)}${'x'.repeat(43)}`;
    for (const headers of [{}, toProtocols(''), toProtocols(wrong), toAuthorization(wrong)])
      expect(await handshake(headers), JSON.stringify(headers)).toEqual([401, undefined]);
    expect(await handshake({}, `?access_token=${working}`)).toEqual([401, undefined]);
    expect(await handshake(toProtocols(reading))).toEqual([403, undefined]);
    expect(await handshake({ ...toProtocols(working), host: 'evil.example' })).toEqual([421, undefined]);
    expect(await handshake(toProtocols(working))).toEqual([101, 'shellfleet.terminal.v1']);
  });

  test('is opened by pages of the server itself and of listed origins only', async () => {
    const protocols = toProtocols(await createKey(['submit']));
    const statusFor = async (origin: string, server: ApiProcess) =>
      (await handshake({ ...protocols, origin }, '', server))[0];
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1', ORIGIN])
      expect(await statusFor(origin, plain), origin).toBe(403);
    expect(await statusFor(plain.url, plain)).toBe(101);
    expect(await statusFor(ORIGIN, open)).toBe(101);
  });
});

describe('a web page', () => {
  /** Sends a request under another name of the server. */
  const statusUnder = (server: ApiProcess, host: string, path: string, headers: RequestHeaders = {}) =>
    new Promise<number | undefined>((resolve, reject) =>
      request(server.url + path, { headers: { ...headers, host } }, (reply) => resolve(reply.resume().statusCode))
        .on('error', reject)
        .end(),
    );

  test('reaches no route under a name of its own', async () => {
    const headers = toAuthorization(await createKey(SCOPES));
    const paths = ['/healthz', '/', '/v1/unknown', ...operations.map((operation) => toRealPath(operation, ids))];
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', 'fleet.example'])
      expect(new Set(await Promise.all(paths.map((path) => statusUnder(plain, host, path, headers))))).toEqual(
        new Set([421]),
      );
    expect(await statusUnder(open, 'fleet.example', '/v1/me', headers)).toBe(200);
  });

  test('may read no reply, unless its origin is listed', async () => {
    const key = toAuthorization(await createKey(['read']));
    const corsOf = ({ headers }: Answer) => [...headers.keys()].filter((name) => name.startsWith('access-control-'));
    for (const operation of operations) {
      const url = plain.url + toRealPath(operation, ids);
      const asked = { origin: ORIGIN, 'access-control-request-method': operation.method };
      const [preflight, reply] = [await send(url, 'OPTIONS', asked), await send(url, 'GET', { origin: ORIGIN })];
      expect([preflight.status, ...corsOf(preflight), ...corsOf(reply)], url).toEqual([401]);
    }
    const allowed = await send(`${open.url}/v1/me`, 'GET', { ...key, origin: ORIGIN });
    expect(allowed.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(allowed.headers.get('access-control-allow-credentials')).toBeNull();
    const other = await send(`${open.url}/v1/me`, 'GET', { ...key, origin: 'https://evil.example' });
    expect([other.headers.get('access-control-allow-origin'), other.status]).toEqual([null, 200]);
  });
});

function readToEnd(url: string, key: string): { opened: Promise<unknown>; ended: Promise<unknown> } {
  const reply = fetch(url, { headers: toAuthorization(key) });
  return { opened: reply, ended: reply.then((one) => one.text()) };
}

describe('a revoked key', () => {
  test('is refused by every server within a second, and its streams end', { retry: 2 }, async () => {
    const key = await createKey(['read']);
    const streams = [plain, open].map((server) => readToEnd(`${server.url}/v1/sessions/first/events`, key));
    await Promise.all(streams.map(({ opened }) => opened));
    await fleet.keys.revoke(key.slice(4, 20));
    const revokedAt = performance.now();
    await Promise.all(streams.map(({ ended }) => ended));
    for (const { url } of [plain, open])
      await expect
        .poll(async () => (await send(`${url}/v1/me`, 'GET', toAuthorization(key))).status, { interval: 20 })
        .toBe(401);
    expect(performance.now() - revokedAt).toBeLessThan(1_000);
  });
});

describe('an upload', () => {
  test('ends with its key, also while its client sends nothing', { retry: 2 }, async () => {
    const key = await createKey(['submit']);
    const command = await (await fleet.session('reads')).submit('sleep 20', { stdin: { open: true } });
    const admin = toAuthorization(await createKey(['admin']));
    const reply = Promise.withResolvers<number | undefined>();
    const upload = request(`${plain.url}/v1/commands/${command.id}/stdin?end=true`, {
      method: 'POST',
      headers: { ...toAuthorization(key), 'content-type': 'application/octet-stream' },
    });
    upload.on('response', ({ statusCode }) => reply.resolve(statusCode)).on('error', reply.reject);
    upload.write('abc');
    await expect
      .poll(async () => (await send(`${plain.url}/metrics`, 'GET', admin)).text)
      .toContain('shellfleet_api_open_work 1');
    await fleet.keys.revoke(key.slice(4, 20));
    const revokedAt = performance.now();
    expect(await reply.promise).toBe(401);
    expect(performance.now() - revokedAt).toBeLessThan(1_000);
    upload.destroy();
    await command.cancel();
  });
});

describe('a token of an issuer', () => {
  test('is accepted where the issuer is named, and its streams end with it', { retry: 2 }, async () => {
    const claims = { aud: 'fleet', sub: 'u-1', preferred_username: 'ada', scope: 'shellfleet:read' };
    // Clocks may differ by 30 s, so this token works for another second or two.
    const token = await issuer.sign({ ...claims, exp: Math.floor(Date.now() / 1_000) - 28 });
    const { opened, ended } = readToEnd(`${open.url}/v1/sessions/first/events`, token);
    await opened;
    const me = await send(`${open.url}/v1/me`, 'GET', toAuthorization(token));
    expect(JSON.parse(me.text)).toMatchObject({ name: 'ada', tenant: 'default', scopes: ['read'] });
    for (const [server, refused] of [
      [plain, token],
      [open, await issuer.sign({ ...claims, exp: Math.floor(Date.now() / 1_000) + 60, aud: 'other' })],
    ] as const)
      expect((await send(`${server.url}/v1/me`, 'GET', toAuthorization(refused))).status).toBe(401);
    await ended;
    expect((await send(`${open.url}/v1/me`, 'GET', toAuthorization(token))).status).toBe(401);
  });
});

describe('the log of a server', () => {
  test('has neither keys, queries nor names', async () => {
    const key = await createKey(SCOPES);
    await send(`${plain.url}/v1/sessions/first?token=${key}`, 'GET', toAuthorization(key));
    await expect.poll(() => plain.output).toContain('/v1/sessions/:id');
    for (const { output } of [plain, open])
      for (const text of ['sfk_', MARK, '?', '/first']) expect(output).not.toContain(text);
  });
});
