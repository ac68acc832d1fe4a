import { createHash } from 'node:crypto';
import { request } from 'node:http';
import type { Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiCaller } from '../support/api/api-caller.ts';
import { type ApiProcess, startApiProcess } from '../support/api/api-process.ts';
import { mostResidentBytes, residentBytes } from '../support/resident-bytes.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// Files over HTTP, by a server in a process of its own, in a real sandbox.

let stack: TestFleet;
let server: ApiProcess;
let session: Session;
let api: ApiCaller;
const FILES = '/sessions/files/files';

beforeAll(async () => {
  stack = await startFleet();
  server = await startApiProcess(stack);
  const { key } = await stack.fleet.keys.create({ name: 'test', scopes: ['submit', 'read'] });
  api = new ApiCaller(server.url, key);
  session = await stack.fleet.session('files');
  await session.run('printf 0123456789 > digits; ln -s digits link; mkdir -p tree/sub; printf abc > tree/sub/f');
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
});

const get = (path: string, headers: Record<string, string> = {}) => api.send('GET', `${FILES}${path}`, { headers });
/** Sends a path as it stands, which `fetch` would change. */
const getRaw = (path: string) =>
  new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    const options = { path: `/v1${path}`, headers: { authorization: `Bearer ${api.key}` } };
    request(server.url, options, (reply) => {
      reply
        .toArray()
        .then((pieces) => resolve({ status: reply.statusCode, body: Buffer.concat(pieces).toString() }), reject);
    })
      .on('error', reject)
      .end();
  });

describe('a file over HTTP', () => {
  test('is sent with its length, its version and headers under which no browser shows it', async () => {
    const reply = await get('/workspace/digits');
    const { modifiedAt } = await session.files.stat('/workspace/digits');
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      'accept-ranges': 'bytes',
      'content-length': '10',
      'content-type': 'application/octet-stream',
      'content-disposition': "attachment; filename*=UTF-8''digits",
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'last-modified': new Date(modifiedAt).toUTCString(),
    });
    expect(await reply.text()).toBe('0123456789');
    const head = await api.send('HEAD', `${FILES}/workspace/digits`);
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '10', '']);
    expect((await get('/workspace/digits', { 'if-none-match': reply.headers.get('etag') ?? '' })).status).toBe(304);
  });

  test.each<[string, string, number, string | null, string]>([
    ['digits', 'bytes=2-4', 206, 'bytes 2-4/10', '234'],
    ['digits', 'bytes=-3', 206, 'bytes 7-9/10', '789'],
    ['link', 'bytes=8-', 206, 'bytes 8-9/10', '89'],
    ['digits', 'lines=1-2', 200, null, '0123456789'],
    ['digits', 'bytes=10-', 416, 'bytes */10', ''],
    ['digits', 'bytes=0-1,3-4', 416, 'bytes */10', ''],
  ])('answers the range of %s %s with %i', async (name, range, status, place, text) => {
    const reply = await get(`/workspace/${name}`, { range });
    expect([reply.status, reply.headers.get('content-range')]).toEqual([status, place]);
    if (status < 400) expect(await reply.text()).toBe(text);
    else expect(await reply.json()).toMatchObject({ status, code: 'COMMAND_INVALID' });
  });

  test('is sent as a whole when the range is of another version', async () => {
    const etag = (await get('/workspace/digits')).headers.get('etag') ?? '';
    const range = 'bytes=0-0';
    expect((await get('/workspace/digits', { range, 'if-range': etag })).status).toBe(206);
    expect((await get('/workspace/digits', { range, 'if-range': '"other"' })).status).toBe(200);
  });

  test('of any name is written and read: spaces, dots, percent signs, other scripts', async () => {
    for (const name of ['a b', '..dots..', '100%25', 'ü/日本 😀', "it's;x=1?#&+", '-rf', 'new\nline']) {
      const path = `${FILES}/workspace/named/${name.split('/').map(encodeURIComponent).join('/')}`;
      expect((await api.send('PUT', path, { body: name })).status).toBe(204);
      expect(await session.files.readText(`/workspace/named/${name}`)).toBe(name);
      const reply = await api.send('GET', path);
      expect(await reply.text()).toBe(name);
      const disposition = reply.headers.get('content-disposition') ?? '';
      expect(decodeURIComponent(disposition.replace(/^attachment; filename\*=UTF-8''/, ''))).toBe(
        name.split('/').at(-1),
      );
    }
  });

  test('of /proc, without a size, is sent whole', async () => {
    expect(await (await get('/proc/self/status')).text()).toContain('State:');
  });

  test.each<[string, string, string, number, string]>([
    ['GET', '/workspace/none', '', 404, 'FILE_NOT_FOUND'],
    ['GET', '/workspace', '', 409, 'FILE_IS_DIRECTORY'],
    ['GET', '/workspace/digits?tar', '', 400, 'PATH_INVALID'],
    ['GET', '/root/x', '', 403, 'FILE_DENIED'],
    ['PUT', '/etc/new', 'x', 403, 'FILE_DENIED'],
    ['PUT', '/workspace/tree', 'x', 409, 'FILE_IS_DIRECTORY'],
    ['DELETE', '/workspace/tree', '', 409, 'FILE_IS_DIRECTORY'],
    ['POST', '/workspace/x?op=rename', '', 400, 'COMMAND_INVALID'],
    ['POST', '/workspace/x?op=rename&to=relative', '', 400, 'PATH_INVALID'],
    ['POST', '/workspace/x?op=chmod&mode=999', '', 400, 'COMMAND_INVALID'],
    ['POST', '/workspace/x?op=link', '', 400, 'COMMAND_INVALID'],
  ])('%s %s is refused with its problem', async (method, path, body, status, code) => {
    const reply = await api.call(method, `${FILES}${path}`, body === '' ? {} : { body });
    expect(reply).toMatchObject({ status, json: { code } });
  });

  test('of an unknown session is not found, and a write opens the session', async () => {
    expect((await api.call('GET', '/sessions/unknown/files/a')).json.code).toBe('SESSION_NOT_FOUND');
    expect((await api.send('PUT', '/sessions/opened/files/workspace/a', { body: 'x' })).status).toBe(204);
    expect(await (await api.send('GET', '/sessions/opened/files/workspace/a')).text()).toBe('x');
  });

  test('stays in the route whatever dots its path has', async () => {
    expect(await getRaw(`${FILES}/workspace/tree/../digits`)).toEqual({ status: 200, body: '0123456789' });
    expect(await getRaw(`${FILES}/../../../../v1/me`)).toMatchObject({
      status: 404,
      body: expect.stringMatching('FILE_NOT_FOUND'),
    });
    expect(await getRaw(`${FILES}/workspace/%2e%2e/workspace%2Fdigits`)).toEqual({ status: 200, body: '0123456789' });
  });
});

describe('a directory over HTTP', () => {
  test('is listed and described, made, renamed, restricted and removed', async () => {
    const { json } = await api.call('GET', `${FILES}/workspace/tree?list`);
    expect(json).toEqual({ items: await session.files.list('/workspace/tree') });
    const stat = await api.call('GET', `${FILES}/workspace/link?stat`);
    expect(stat.json).toEqual(await session.files.stat('/workspace/link'));
    for (const [method, path] of [
      ['POST', '/workspace/made/deep?op=mkdir'],
      ['POST', '/workspace/made/deep?op=rename&to=/workspace/made/new'],
      ['POST', '/workspace/made/new?op=chmod&mode=0700'],
    ] as const)
      expect((await api.send(method, `${FILES}${path}`)).status).toBe(204);
    expect((await session.run('stat -c %a:%n made/*')).stdout).toBe('700:made/new\n');
    expect((await api.send('DELETE', `${FILES}/workspace/made?recursive`)).status).toBe(204);
    expect((await session.run('ls -d made')).exitCode).toBe(2);
  });

  test('tells why a small directory is not copied, although its first files could be', async () => {
    await session.run('mkdir -p odd; printf abc > odd/a; mkfifo odd/b');
    const reply = await get('/workspace/odd?tar');
    const detail = expect.stringContaining('/workspace/odd/b is neither a file nor a directory');
    expect([reply.status, await reply.json()]).toEqual([403, expect.objectContaining({ code: 'FILE_DENIED', detail })]);
  });

  test('is copied as a tar in both directions', async () => {
    const tar = await api.send('GET', `${FILES}/workspace/tree`, { headers: { accept: 'application/x-tar' } });
    expect(tar.headers.get('content-disposition')).toBe("attachment; filename*=UTF-8''tree.tar");
    const put = await api.send('PUT', `${FILES}/workspace/copied`, {
      body: Buffer.from(await tar.arrayBuffer()),
      headers: { 'content-type': 'application/x-tar' },
    });
    expect(put.status).toBe(204);
    expect((await session.run('diff -r tree copied && echo same')).stdout).toBe('same\n');
    const broken = await api.call('PUT', `${FILES}/workspace/copied`, {
      body: 'no tar',
      headers: { 'content-type': 'application/x-tar' },
    });
    expect(broken).toMatchObject({ status: 400, json: { code: 'COMMAND_INVALID' } });
  });
});

describe('a large file over HTTP', () => {
  const MIB = 2 ** 20;
  const bytes = Number(process.env.SHELLFLEET_TEST_API_BYTES ?? 48 * MIB);

  test('passes the server in both directions while its memory stays flat', async () => {
    const piece = Buffer.alloc(MIB, 'shellfleet ');
    const [sent, received] = [createHash('sha256'), createHash('sha256')];
    let left = bytes;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (left <= 0) return controller.close();
        left -= piece.byteLength;
        sent.update(piece);
        controller.enqueue(piece);
      },
    });
    const before = await residentBytes(server.pid);
    const copy = async () => {
      const startedAt = performance.now();
      expect((await api.send('PUT', `${FILES}/tmp/large`, { body })).status).toBe(204);
      const putAt = performance.now();
      const reply = await get('/tmp/large');
      for await (const part of reply.body ?? []) received.update(part);
      expect(reply.headers.get('content-length')).toBe(String(bytes));
      return [putAt - startedAt, performance.now() - putAt].map(Math.round);
    };
    const copying = copy();
    const most = await mostResidentBytes(server.pid, copying);
    const times = await copying;
    if (process.env.SHELLFLEET_TEST_API_BYTES) console.log({ times, before: before / MIB, most: most / MIB });
    expect(received.digest('hex')).toBe(sent.digest('hex'));
    expect(most - before).toBeLessThan(250 * MIB);
    await session.files.remove('/tmp/large');
  }, 600_000);
});
