import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiCaller, ReceivedEvent } from '../support/api/api-caller.ts';
import { type ServedApi, serveApi } from '../support/api/serve-api.ts';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';

let stage: ClientStage;
let api: ServedApi;
let caller: ApiCaller;
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost();
  api = await serveApi({ redisUrl: stage.own.url, namespace: stage.namespace, sealKeys: [stage.sealKey] });
  caller = await api.caller();
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await stage?.[Symbol.asyncDispose]();
});

const WAIT = { prefer: 'wait=20' };

/** Collects events until the reading is aborted. */
function collect(path: string, from = caller): { events: ReceivedEvent[]; end(): Promise<void> } {
  const events: ReceivedEvent[] = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const event of from.events(path, undefined, stop.signal)) events.push(event);
  })().catch(() => {});
  return {
    events,
    end() {
      stop.abort();
      return reading;
    },
  };
}

/** Submits a script about which the host asks, because it begins with `ask`. */
async function ask(session: string): Promise<{ command: string; question: string }> {
  const body = { script: 'ask() { echo asked; }; ask' };
  const { json } = await caller.call('POST', `/sessions/${session}/commands`, { body });
  const listed = () => caller.call('GET', `/approvals?sessionId=${session}`);
  await expect.poll(async () => (await listed()).json.items.length).toBe(1);
  return { command: json.id, question: (await listed()).json.items[0].id };
}

describe('questions over HTTP', () => {
  test('are streamed and answered by a key that did not submit them', async () => {
    const approver = await api.caller(['approve']);
    const watching = collect('/approvals/events', approver);
    const { command, question } = await ask('asks');
    await expect.poll(() => watching.events.at(-1)?.data).toMatchObject({ id: question, state: 'pending' });
    const own = await caller.call('POST', `/approvals/${question}/approve`);
    expect(own).toMatchObject({ status: 403, json: { code: 'UNAUTHORIZED', title: 'Forbidden' } });
    expect((await approver.call('POST', `/approvals/${question}/approve`)).status).toBe(204);
    const { json } = await caller.call('GET', `/commands/${command}`, { headers: WAIT });
    expect(json.result).toMatchObject({ outcome: 'success', stdout: 'asked\n' });
    await expect.poll(() => watching.events.at(-1)?.data).toMatchObject({ state: 'approved', answeredBy: 'test' });
    await watching.end();
    expect(await approver.call('POST', `/approvals/${question}/deny`)).toMatchObject({
      status: 404,
      json: { code: 'APPROVAL_NOT_FOUND' },
    });
  });

  test('are denied with a reason', async () => {
    const approver = await api.caller(['approve']);
    const { command, question } = await ask('denied');
    await approver.call('POST', `/approvals/${question}/deny`, { body: { reason: 'not today' } });
    const { json } = await caller.call('GET', `/commands/${command}`, { headers: WAIT });
    expect(json.result).toMatchObject({ outcome: 'denial', stderr: expect.stringContaining('not today') });
  });
});

describe('batches over HTTP', () => {
  test('run in the fleet, and their results are lines of JSON', async () => {
    const tasks = ['a', 'b'].map((id) => ({ id, script: `echo ${id}` }));
    const reply = await caller.send('POST', '/batches', { body: { name: 'two', tasks, options: { concurrency: 2 } } });
    expect([reply.status, reply.headers.get('location')]).toEqual([202, '/v1/batches/two']);
    const text = await (await caller.send('GET', '/batches/two/results?follow')).text();
    const results = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(results.map(({ id, passed }) => ({ id, passed })).sort((x, y) => (x.id < y.id ? -1 : 1))).toEqual([
      { id: 'a', passed: true },
      { id: 'b', passed: true },
    ]);
    expect((await caller.call('GET', '/batches/two')).json).toMatchObject({ state: 'ended', results: 2 });
    expect((await caller.call('GET', '/batches?limit=1')).json).toMatchObject({ items: [{ name: 'two' }] });
    expect((await caller.call('POST', '/batches/two/cancel')).json).toEqual({ cancelled: false });
    expect((await caller.call('DELETE', '/batches/two')).status).toBe(204);
    expect(await caller.call('GET', '/batches/two/results')).toMatchObject({ json: { code: 'BATCH_NOT_FOUND' } });
  });

  test('take no files, whose paths would be those of the server', async () => {
    const tasks = [{ id: 'a', script: 'true', files: { '/workspace/passwd': '/etc/passwd' } }];
    expect(await caller.call('POST', '/batches', { body: { tasks } })).toMatchObject({
      status: 400,
      json: { context: { issues: [{ path: 'tasks.0.files' }] } },
    });
  });
});

describe('the fleet over HTTP', () => {
  test('tells what rules say about a script', async () => {
    const rule = { pattern: ['rm'], decision: 'forbid', justification: 'keep it' };
    const body = { script: 'rm -rf x', execPolicy: [rule] };
    expect((await caller.call('POST', '/rules:check', { body })).json).toMatchObject({
      requirement: 'forbidden',
      reason: expect.stringContaining('keep it'),
    });
    const invalid = { script: 'true', execPolicy: [{ ...rule, match: [['ls']] }] };
    expect((await caller.call('POST', '/rules:check', { body: invalid })).status).toBe(400);
  });

  test('lists hosts, tenants, the queue and the demand', async () => {
    const hosts = await caller.call('GET', '/hosts');
    expect(hosts.json.items).toMatchObject([{ id: 'host-1', state: 'up' }]);
    expect((await caller.call('GET', '/queue')).json).toMatchObject({
      sessions: { waiting: 0 },
      tenants: expect.any(Array),
    });
    expect((await caller.call('GET', '/tenants')).json.items).toMatchObject([{ name: 'default' }]);
    await expect.poll(async () => (await caller.call('GET', '/scale')).status).toBe(200);
    expect((await caller.call('GET', '/scale')).json).toMatchObject({ slots: 100, hosts: { up: 1 } });
    expect((await caller.call('GET', '/tools')).json).toEqual({ items: [] });
    const call = await caller.call('POST', '/tools/none/call', { body: { args: {} } });
    expect(call.json).toMatchObject({ ok: false, error: { code: 'unknown-tool' } });
  });

  test('asks hosts for what operators want', async () => {
    const ask = (what: string, body?: object) => caller.call('POST', `/hosts/host-1/${what}`, { body });
    expect((await ask('cordon')).status).toBe(204);
    expect((await caller.call('GET', '/hosts')).json.items).toMatchObject([{ cordoned: true }]);
    expect([(await ask('uncordon')).status, (await ask('drain', { undo: true })).status]).toEqual([204, 204]);
    expect((await caller.call('DELETE', '/hosts/none')).json.code).toBe('COMMAND_INVALID');
  });

  test('streams the events of all tenants', async () => {
    const other = await api.caller(['submit'], 'other');
    const watching = collect('/events');
    let opened = 0;
    const seen = async () => {
      await other.call('POST', `/sessions/event-${++opened}/commands`, { body: { script: 'true' } });
      return watching.events.map(({ type, data }) => [type, data.tenant]);
    };
    await expect.poll(seen, { interval: 200 }).toContainEqual(['command.completed', 'other']);
    await watching.end();
  });
});
