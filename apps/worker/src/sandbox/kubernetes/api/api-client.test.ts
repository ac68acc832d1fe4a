import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type ApiReply,
  refuseWith,
  replyWith,
  type ScriptedApi,
  sendEvents,
  startScriptedApi,
} from '../../../../test-support/scripted-api.ts';
import { type ApiBounds, ApiClient } from './api-client.ts';
import { ApiUnreachable, isAlreadyThere, isNoObject } from './api-errors.ts';

const PODS = { group: '/api/v1', plural: 'pods' };
const schema = z.object({ metadata: z.object({ name: z.string() }) });
const pod = (name: string) => ({ metadata: { name, resourceVersion: '5' }, spec: {} });
const list = (names: string[], more = '') =>
  replyWith({ metadata: { resourceVersion: '7', continue: more }, items: names.map(pod) });

const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function stage(replies: ApiReply[], bounds?: ApiBounds): Promise<{ api: ScriptedApi; client: ApiClient }> {
  const api = await startScriptedApi(...replies);
  opened.push({ close: () => api[Symbol.asyncDispose]() });
  const client = new ApiClient(api.settings, 'shells', bounds);
  opened.push(client);
  return { api, client };
}

const isBusy = refuseWith(429, 'TooManyRequests', { 'retry-after': '0' });

describe('ApiClient', () => {
  test('sends each verb to the path of the namespace, with its token', async () => {
    const { api, client } = await stage([replyWith(pod('a'))]);
    await client.create(PODS, pod('a'), schema);
    expect(await client.get(PODS, 'a', schema)).toEqual({ metadata: { name: 'a' } });
    await client.patch(PODS, 'a', { metadata: { labels: { pool: null } } }, schema);
    await client.delete(PODS, 'a', { gracePeriodSeconds: 3 });
    expect(
      api.calls.map(({ method, url, headers, body }) => [method, url.pathname, headers['content-type'], body]),
    ).toEqual([
      ['POST', '/api/v1/namespaces/shells/pods', 'application/json', JSON.stringify(pod('a'))],
      ['GET', '/api/v1/namespaces/shells/pods/a', undefined, ''],
      [
        'PATCH',
        '/api/v1/namespaces/shells/pods/a',
        'application/merge-patch+json',
        '{"metadata":{"labels":{"pool":null}}}',
      ],
      ['DELETE', '/api/v1/namespaces/shells/pods/a', 'application/json', '{"gracePeriodSeconds":3}'],
    ]);
    expect(new Set(api.calls.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer first']));
  });

  test('keeps a name that is no part of a path from leaving its place', async () => {
    const { api, client } = await stage([replyWith(pod('a'))]);
    await client.get(PODS, '../secrets/a?b', schema);
    expect(api.calls[0]?.url.href).toBe('https://api/api/v1/namespaces/shells/pods/..%2Fsecrets%2Fa%3Fb');
  });

  test('joins the pages of a list', async () => {
    const { api, client } = await stage([list(['a', 'b'], 'more'), list(['c'])]);
    const { items, resourceVersion } = await client.list(PODS, 'fleet=x', schema);
    expect([items.map(({ metadata }) => metadata.name), resourceVersion]).toEqual([['a', 'b', 'c'], '7']);
    expect(api.calls.map(({ url }) => url.searchParams.get('continue'))).toEqual([null, 'more']);
  });

  test('lists from the beginning when the rest of a list has expired', async () => {
    const { client } = await stage([list(['a'], 'more'), refuseWith(410, 'Expired'), list(['b'])]);
    const { items } = await client.list(PODS, 'fleet=x', schema);
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['b']);
  });

  test('takes the null of an empty list', async () => {
    const { client } = await stage([replyWith({ metadata: { resourceVersion: '1' }, items: null })]);
    expect(await client.list(PODS, 'fleet=x', schema)).toEqual({ items: [], resourceVersion: '1' });
  });

  test('reads the token again when the server refuses it', async () => {
    const { api, client } = await stage([
      replyWith(pod('a')),
      (response) => {
        api.writeToken('second\n');
        refuseWith(401, 'Unauthorized')(response, undefined as never);
      },
      replyWith(pod('a')),
    ]);
    await client.get(PODS, 'a', schema);
    await client.get(PODS, 'a', schema);
    expect(api.calls.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first',
      'Bearer first',
      'Bearer second',
    ]);
  });

  test('gives up when the server refuses the token that is in the file', async () => {
    const { api, client } = await stage([refuseWith(401, 'Unauthorized')]);
    await expect(client.get(PODS, 'a', schema)).rejects.toMatchObject({ statusCode: 401 });
    expect(api.calls).toHaveLength(2);
  });

  test('repeats a call after the time for which a busy server asks', async () => {
    const { api, client } = await stage([isBusy, isBusy, replyWith(pod('a'))]);
    await client.create(PODS, pod('a'), schema);
    expect(api.calls).toHaveLength(3);
  });

  test('reports the refusal when the server is busy until the deadline', async () => {
    const busy = refuseWith(429, 'TooManyRequests', { 'retry-after': '60' });
    const { client } = await stage([busy], { callTimeoutMs: 50 });
    await expect(client.get(PODS, 'a', schema)).rejects.toMatchObject({ statusCode: 429, retryAfterMs: 60_000 });
  });

  test('reports a refusal with its status and reason', async () => {
    const { client } = await stage([refuseWith(409, 'AlreadyExists'), refuseWith(404), refuseWith(409, 'Conflict')]);
    const errors = [];
    for (let i = 0; i < 3; i++) errors.push(await client.create(PODS, {}, schema).catch((error: unknown) => error));
    expect(errors.map(isAlreadyThere)).toEqual([true, false, false]);
    expect(errors.map(isNoObject)).toEqual([false, true, false]);
    expect(errors[0]).toMatchObject({ reason: 'AlreadyExists', message: 'AlreadyExists of 409' });
  });

  test('reports a refusal without a Status by its number', async () => {
    const { client } = await stage([(response) => response.writeHead(502).end('<html>Bad gateway')]);
    const message = 'the API server replied with status 502';
    await expect(client.get(PODS, 'a', schema)).rejects.toMatchObject({ statusCode: 502, message });
  });

  test('ends a call without a reply at its deadline', async () => {
    const { client } = await stage([() => {}], { callTimeoutMs: 50 });
    await expect(client.get(PODS, 'a', schema)).rejects.toEqual(new ApiUnreachable('it took longer than 50 ms'));
  });

  test('ends a call whose reply stops in its middle at the deadline', async () => {
    const { client } = await stage([(response) => response.writeHead(200).write('{')], { callTimeoutMs: 200 });
    await expect(client.get(PODS, 'a', schema)).rejects.toEqual(new ApiUnreachable('it took longer than 200 ms'));
  });

  test('ends a call when its caller gives up', async () => {
    const caller = new AbortController();
    const { client } = await stage([() => caller.abort(new Error('closing'))]);
    await expect(client.get(PODS, 'a', schema, caller.signal)).rejects.toThrow('closing');
  });

  test('sends a request again when the server has closed the idle connection', async () => {
    const { api, client } = await stage([
      replyWith(pod('a')),
      (response) => response.socket?.destroy(),
      replyWith(pod('a')),
    ]);
    await client.get(PODS, 'a', schema);
    await client.get(PODS, 'a', schema);
    expect(api.calls).toHaveLength(3);
  });

  test('refuses a server whose certificate its authority has not signed', async () => {
    const { api } = await stage([replyWith(pod('a'))]);
    const { server, tokenFile } = api.settings;
    const client = new ApiClient({ server, tokenFile }, 'shells');
    opened.push(client);
    await expect(client.get(PODS, 'a', schema)).rejects.toThrow(/self-signed certificate/);
    expect(api.calls).toEqual([]);
  });

  test('names the file that it cannot read', async () => {
    const client = new ApiClient({ server: 'https://127.0.0.1:1', tokenFile: '/none/token' }, 'shells');
    await expect(client.get(PODS, 'a', schema)).rejects.toThrow(/^\/none\/token cannot be read: ENOENT/);
  });

  test('refuses a reply that is not an object of the API', async () => {
    const { client } = await stage([replyWith({ metadata: {} })]);
    await expect(client.get(PODS, 'a', schema)).rejects.toThrow(/^the reply is not one of an API server:/);
  });
});

describe('the bounds of ApiClient', () => {
  test.each<[string, ApiReply]>([
    ['a reply', (response) => response.end('x'.repeat(101))],
    ['a refusal', (response) => response.writeHead(500).end('x'.repeat(101))],
  ])('end %s that is too long', async (_case, reply) => {
    const { client } = await stage([reply], { mostBytes: 100 });
    const error = new ApiUnreachable('the reply broke off: it has over 100 bytes');
    await expect(client.get(PODS, 'a', schema)).rejects.toEqual(error);
  });

  test('let a reply of the most bytes pass', async () => {
    const reply = JSON.stringify(pod('a'));
    const { client } = await stage([(response) => response.end(reply)], { mostBytes: reply.length });
    expect(await client.get(PODS, 'a', schema)).toEqual({ metadata: { name: 'a' } });
  });

  test('end a list that has no end', async () => {
    const { api, client } = await stage([list(['a', 'b'], 'more')], { mostObjects: 5 });
    const error = new ApiUnreachable('a list has over 5 objects');
    await expect(client.list(PODS, 'fleet=x', schema)).rejects.toEqual(error);
    expect(api.calls).toHaveLength(3);
  });
});

describe('ApiClient.watch', () => {
  const watchAll = async (client: ApiClient) => {
    const seen = [];
    const events = await client.watch(PODS, 'fleet=x', '7', schema, new AbortController().signal);
    for await (const event of events) seen.push(event);
    return seen;
  };
  const collect = (client: ApiClient) => watchAll(client).catch((error: unknown) => error);

  test('asks for the changes after a version, with bookmarks', async () => {
    const { api, client } = await stage([sendEvents([])]);
    await watchAll(client);
    const { searchParams } = api.calls[0]?.url ?? new URL('none:');
    const { timeoutSeconds, ...asked } = Object.fromEntries(searchParams);
    expect(asked).toEqual({ labelSelector: 'fleet=x', resourceVersion: '7', watch: '1', allowWatchBookmarks: 'true' });
    expect(Number(timeoutSeconds)).toBeGreaterThanOrEqual(300);
  });

  test('reads events at every split of their bytes', async () => {
    const object = { metadata: { name: 'ä', resourceVersion: '8' } };
    const lines = [
      { type: 'ADDED', object },
      { type: 'DELETED', object },
      { type: 'BOOKMARK', object },
    ];
    const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { client } = await stage([
      (response) => {
        for (const byte of bytes) response.write(Buffer.of(byte));
        response.end();
      },
    ]);
    expect(await watchAll(client)).toEqual([
      { type: 'present', object: { metadata: { name: 'ä' } } },
      { type: 'gone', object: { metadata: { name: 'ä' } } },
      { type: 'bookmark', resourceVersion: '8' },
    ]);
  });

  test.each([
    ['a refusal', refuseWith(410, 'Expired'), { statusCode: 410 }],
    ['an error', sendEvents([{ type: 'ERROR', object: { kind: 'Status', code: 410 } }]), { statusCode: 410 }],
    ['an error without a code', sendEvents([{ type: 'ERROR', object: { kind: 'Status' } }]), { statusCode: 500 }],
    ['an unknown event', sendEvents([{ type: 'MOVED', object: {} }]), { name: 'ApiUnreachable' }],
    ['an object without a name', sendEvents([{ type: 'ADDED', object: {} }]), { name: 'ApiUnreachable' }],
  ])('ends with %s of the server', async (_case, reply, expected) => {
    const { client } = await stage([reply]);
    expect(await collect(client)).toMatchObject(expected);
  });

  test('ends when the connection is silent for too long', async () => {
    const { client } = await stage([sendEvents([], { stays: true })], { idleTimeoutMs: 50 });
    expect(await collect(client)).toEqual(new ApiUnreachable('the watch was silent for 50 ms'));
  });

  test('ends at the deadline when the server does not reply', async () => {
    const { client } = await stage([() => {}], { callTimeoutMs: 50 });
    expect(await collect(client)).toEqual(new ApiUnreachable('it took longer than 50 ms'));
  });
});
