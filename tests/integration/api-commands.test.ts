import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiCaller, outputOf, type ReceivedEvent } from '../support/api/api-caller.ts';
import { type ServedApi, serveApi } from '../support/api/serve-api.ts';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';

let stage: ClientStage;
let place: Parameters<typeof serveApi>[0];
let api: ServedApi;
let caller: ApiCaller;
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost();
  place = { redisUrl: stage.own.url, namespace: stage.namespace, sealKeys: [stage.sealKey] };
  api = await serveApi(place);
  caller = await api.caller();
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await stage?.[Symbol.asyncDispose]();
});

const WAIT = { prefer: 'wait=20' };
const run = (session: string, script: string, headers = {}) =>
  caller.call('POST', `/sessions/${session}/commands`, { body: { script }, headers: { ...WAIT, ...headers } });
/** Submits a command, and returns its id. */
async function submit(session: string, body: object): Promise<string> {
  const { status, json } = await caller.call('POST', `/sessions/${session}/commands`, { body });
  expect(status).toBe(202);
  return json.id;
}

describe('sessions over HTTP', () => {
  test('are opened once, attached to, and refused with another spec', async () => {
    const first = await caller.call('PUT', '/sessions/spec', { body: { labels: { team: 'a' } } });
    expect(first).toMatchObject({ status: 201, json: { id: 'spec', state: 'queued', labels: { team: 'a' } } });
    expect((await caller.call('PUT', '/sessions/spec', { body: { labels: { team: 'a' } } })).status).toBe(200);
    expect((await caller.call('PUT', '/sessions/spec')).status).toBe(200);
    expect(await caller.call('PUT', '/sessions/spec', { body: { labels: { team: 'b' } } })).toMatchObject({
      status: 409,
      json: { code: 'SESSION_CONFLICT', context: { fields: ['labels.team'] } },
    });
    expect(await caller.call('PUT', '/sessions/spec', { body: { colour: 'red' } })).toMatchObject({
      status: 400,
      json: { code: 'SESSION_SPEC_INVALID', context: { issues: [{ path: 'colour', message: 'unknown field' }] } },
    });
  });

  test('are listed page by page, and by label', async () => {
    const other = await api.caller(['submit', 'read'], 'pages');
    for (const id of ['c', 'a', 'b', 'd']) await other.call('PUT', `/sessions/${id}`, { body: { labels: { is: id } } });
    const pages: string[][] = [];
    let cursor: string | undefined = '';
    while (cursor !== undefined) {
      const { json } = await other.call('GET', `/sessions?limit=2&cursor=${cursor}`);
      pages.push(json.items.map(({ id }: { id: string }) => id));
      cursor = json.next;
    }
    expect(pages).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
    const { json } = await other.call('GET', '/sessions?label=is%3Dc');
    expect(json.items).toMatchObject([{ id: 'c' }]);
  });

  test('are closed, and stay readable', async () => {
    await run('closed', 'echo hi');
    expect((await caller.call('DELETE', '/sessions/closed')).status).toBe(204);
    expect((await caller.call('DELETE', '/sessions/never-was')).status).toBe(204);
    expect(await caller.call('GET', '/sessions/closed')).toMatchObject({ status: 200, json: { state: 'closed' } });
    const events = await Array.fromAsync(caller.events('/sessions/closed/events'));
    expect(events.at(-1)).toMatchObject({ type: 'session.closed', data: { type: 'session.closed' } });
    const reply = await caller.send('GET', '/sessions/closed/events', {
      headers: { 'last-event-id': events.at(-1)?.id ?? '' },
    });
    expect(reply.status).toBe(204);
  });

  test('of another tenant are as if they were not there', async () => {
    const { json } = await run('own', 'echo hi');
    const other = await api.caller(undefined, 'other');
    const paths = ['/sessions/own', '/sessions/own/events', `/commands/${json.commandId}`];
    const replies = await Promise.all(paths.map((path) => other.call('GET', path)));
    expect(replies.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect((await other.call('GET', '/sessions/none')).json.code).toBe(replies[0]?.json.code);
  });
});

describe('a command over HTTP', () => {
  test('is accepted with its path, and waited for on request', async () => {
    const reply = await caller.send('POST', '/sessions/s/commands', { body: { script: 'echo hi; exit 3' } });
    const accepted = (await reply.json()) as { id: string };
    expect([reply.status, reply.headers.get('location')]).toEqual([202, `/v1/commands/${accepted.id}`]);
    const { json } = await caller.call('GET', `/commands/${accepted.id}`, { headers: WAIT });
    expect(json).toMatchObject({
      id: accepted.id,
      sessionId: 's',
      state: 'ended',
      result: { exitCode: 3, stdout: 'hi\n' },
    });
    const waited = await caller.send('POST', '/sessions/s/commands', { body: { script: 'echo hi' }, headers: WAIT });
    expect([waited.status, waited.headers.get('preference-applied')]).toEqual([200, 'wait=20']);
    expect(await waited.json()).toMatchObject({ outcome: 'success', stdout: 'hi\n' });
  });

  test('is answered with its id if it has not ended in that time', async () => {
    const script = 'read line; echo got $line';
    const { status, json } = await caller.call('POST', '/sessions/slow/commands', {
      ...{ body: { script, stdin: { open: true } }, headers: { prefer: 'wait=0' } },
    });
    expect([status, json.sessionId]).toEqual([202, 'slow']);
    await expect.poll(async () => (await caller.call('GET', `/commands/${json.id}`)).json.state).toBe('running');
    const stdin = await caller.call('POST', `/commands/${json.id}/stdin?end=true`, { body: 'this\n' });
    expect(stdin.status).toBe(204);
    const ended = await caller.call('GET', `/commands/${json.id}`, { headers: WAIT });
    expect(ended.json).toMatchObject({ state: 'ended', result: { stdout: 'got this\n' } });
  });

  test('is accepted once for one key', async () => {
    const key = { 'idempotency-key': 'one' };
    const [first, second] = [await run('keys', 'echo 1', key), await run('keys', 'echo 1', key)];
    expect(second.json).toMatchObject({ commandId: first.json.commandId, deduplicated: true });
    expect(await run('keys', 'echo 2', key)).toMatchObject({ status: 422, json: { code: 'IDEMPOTENCY_CONFLICT' } });
  });

  test('is refused with the fields that are wrong', async () => {
    const body = { script: 'true', timeoutMs: -1, shell: 'zsh', stdin: { base64: '*' } };
    const { status, json } = await caller.call('POST', '/sessions/s/commands', { body });
    expect([status, json.code]).toEqual([400, 'COMMAND_INVALID']);
    expect(json.context.issues.map(({ path }: { path: string }) => path).sort()).toEqual([
      'shell',
      'stdin.base64',
      'timeoutMs',
    ]);
    // The media type of `curl --data`.
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const form = await caller.send('POST', '/sessions/s/commands', { body: '{"script":"true"}', headers });
    expect([form.status, await form.text()]).toEqual([415, expect.stringContaining('Content-Type: application/json')]);
  });

  test('has no stream after an id that is none of its events', async () => {
    const id = await submit('places', { script: 'true' });
    for (const path of [`/commands/${id}/events`, '/sessions/places/events'])
      for (const headers of [{ 'last-event-id': 'other' }, { 'last-event-id': '' }])
        expect(await caller.call('GET', path, { headers })).toMatchObject({
          ...{ status: 400, json: { code: 'COMMAND_INVALID', context: { issues: [{ path: 'last-event-id' }] } } },
        });
  });

  test('is cancelled once', async () => {
    const id = await submit('cancelled', { script: 'sleep 60' });
    const body = { reason: 'no longer needed' };
    expect((await caller.call('POST', `/commands/${id}/cancel`, { body })).json).toEqual({ cancelled: true });
    const { json } = await caller.call('GET', `/commands/${id}`, { headers: WAIT });
    expect(json.result).toMatchObject({ outcome: 'cancellation', cancelReason: 'no longer needed' });
    expect((await caller.call('POST', `/commands/${id}/cancel`)).json).toEqual({ cancelled: false });
  });

  test('has a log of exactly its bytes, or a part of it', async () => {
    const id = await submit('log', {
      script: 'cat',
      stdin: { base64: Buffer.from([0, 255, 10, 195]).toString('base64') },
    });
    await caller.call('GET', `/commands/${id}`, { headers: WAIT });
    const [whole, rest] = [`/commands/${id}/log`, `/commands/${id}/log?stream=stdout&from=2`].map(async (path) =>
      Buffer.from(await (await caller.send('GET', path)).arrayBuffer()),
    );
    expect([await whole, await rest]).toEqual([Buffer.from([0, 255, 10, 195]), Buffer.from([10, 195])]);
  });
});

describe('a run over HTTP', () => {
  test('returns the Result, and the same one for the same key', async () => {
    const reply = await caller.send('POST', '/run', { body: { script: 'echo once' } });
    const key = reply.headers.get('idempotency-key') ?? '';
    const first = (await reply.json()) as { commandId: string };
    expect([reply.status, key]).toEqual([200, expect.stringMatching(/^[\w-]{36}$/)]);
    const again = await caller.call('POST', '/run', {
      body: { script: 'echo once' },
      headers: { 'idempotency-key': key },
    });
    expect(again).toMatchObject({ status: 200, json: { commandId: first.commandId, deduplicated: true } });
  });

  test('goes on when its client no longer waits', async () => {
    const headers = { prefer: 'wait=0', 'idempotency-key': 'slow-run' };
    const body = { script: 'sleep 0.3; echo done' };
    const { status, json } = await caller.call('POST', '/run', { body, headers });
    expect([status, json]).toEqual([202, { idempotencyKey: 'slow-run' }]);
    const again = await caller.call('POST', '/run', { body, headers: { ...headers, ...WAIT } });
    expect(again).toMatchObject({ status: 200, json: { stdout: 'done\n', outcome: 'success' } });
  });
});

describe('a stream of events', () => {
  test('has exactly the bytes of a command, and its Result at the end', async () => {
    const bytes = Buffer.from([...Buffer.from('\u{1f600}é'), 0, 255, 13, 10]);
    const script = `cat; printf '\\303' >&2; sleep 0.1; printf '\\251' >&2`;
    const id = await submit('bytes', { script, stdin: { base64: bytes.toString('base64') } });
    const events = await Array.fromAsync(caller.events(`/commands/${id}/events`));
    expect([outputOf(events), outputOf(events, 'stderr').toString()]).toEqual([bytes, 'é']);
    expect(events.at(-1)).toMatchObject({ id: 'end', type: 'command.completed', data: { outcome: 'success' } });
    expect((await caller.send('GET', `/commands/${id}/events`, { headers: { 'last-event-id': 'end' } })).status).toBe(
      204,
    );
  });

  test('continues after any event, at any server, without a lost or doubled byte', async () => {
    await using second = await serveApi(place);
    const other = second.withKeyOf(caller);
    const id = await submit('resumed', { script: 'for i in 1 2 3 4 5; do echo line $i; sleep 0.05; done' });
    const all = await Array.fromAsync(caller.events(`/commands/${id}/events`));
    expect(outputOf(all).toString()).toBe('line 1\nline 2\nline 3\nline 4\nline 5\n');
    for (const [index, { id: last }] of all.slice(0, -1).entries()) {
      const rest = await Array.fromAsync(other.events(`/commands/${id}/events`, last));
      expect(rest).toEqual(all.slice(index + 1));
    }
  });

  test('ends without an error when its server stops, and a wait with what is known', async () => {
    const first = await serveApi(place);
    const stopped = first.withKeyOf(caller);
    const id = await submit('stopped', { script: 'echo before; read line; echo $line', stdin: { open: true } });
    const before: ReceivedEvent[] = [];
    const reading = (async () => {
      for await (const event of stopped.events(`/commands/${id}/events`)) before.push(event);
    })();
    const waiting = stopped.call('GET', `/commands/${id}`, { headers: WAIT });
    await expect.poll(() => before.length).toBe(1);
    await first.server.drain(10_000);
    await reading;
    expect((await waiting).json).toMatchObject({ state: 'running' });
    await caller.call('POST', `/commands/${id}/stdin`, { body: 'after\n' });
    const rest = await Array.fromAsync(caller.events(`/commands/${id}/events`, before[0]?.id));
    expect(outputOf([...before, ...rest]).toString()).toBe('before\nafter\n');
    await first[Symbol.asyncDispose]();
  });

  test('ends when its key is revoked', async () => {
    const fleet = await stage.connect();
    const { key, id: keyId } = await fleet.keys.create({ name: 'short', scopes: ['read'] });
    const id = await submit('revoked', { script: 'sleep 20' });
    const other = api.withKeyOf({ ...caller, key } as ApiCaller);
    const reading = Array.fromAsync(other.events(`/commands/${id}/events`));
    await expect.poll(() => api.server.watched.metrics.text()).toContain('shellfleet_api_open_work 1');
    await fleet.keys.revoke(keyId);
    expect((await reading).map(({ type }) => type)).toEqual([]);
    await expect.poll(async () => (await other.call('GET', '/me')).status).toBe(401);
    await caller.call('POST', `/commands/${id}/cancel`);
  });
});
