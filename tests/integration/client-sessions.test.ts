import { forget } from '@shellfleet/mailbox';
import { sessionKeys, tenantKeys } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';

// Which sessions the client lists.

let stage: ClientStage;
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost();
});
afterAll(() => stage[Symbol.asyncDispose]());

describe('sessions', () => {
  test('are listed by state and labels, closed ones on request until they expire', async () => {
    const fleet = await stage.connect();
    const list = async (filter?: Parameters<typeof fleet.sessions>[0]) =>
      (await Array.fromAsync(fleet.sessions(filter))).map(({ id, state }) => `${id} ${state}`).sort();
    const labelled = (labels: Record<string, string>) => ({ labels });
    const ci = await fleet.session('ci-1', labelled({ job: 'ci', team: 'a' }));
    await fleet.session('ci-2', labelled({ job: 'ci', team: 'b' }));
    await fleet.session('plain');
    await ci.run('true');
    await ci.close();
    const all = ['ci-1 closed', 'ci-2 queued', 'plain queued'];
    const check = async () => {
      expect(await list()).toEqual(all.slice(1));
      expect(await list({ all: true })).toEqual(all);
      expect(await list({ state: 'closed' })).toEqual(['ci-1 closed']);
      expect(await list({ labels: { job: 'ci' } })).toEqual(['ci-2 queued']);
      expect(await list({ labels: { job: 'ci' }, all: true })).toEqual(['ci-1 closed', 'ci-2 queued']);
      expect(await list({ labels: { job: 'ci', team: 'b' }, state: 'closed' })).toEqual([]);
    };
    await check();
    const score = (await stage.redis.zscore(tenantKeys(stage.keyspace, 'default').index, 'ci-1')) ?? '';
    const keys = sessionKeys(stage.keyspace, 'default', 'ci-1');
    expect(await forget(stage.redis, keys, score, 60_000)).toBe(true);
    await check();
    expect(await ci.info()).toMatchObject({
      state: 'closed',
      labels: { job: 'ci', team: 'a' },
      closedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      closeReason: 'a caller closed it',
    });
    expect(Object.keys((await (await fleet.session('plain')).info()) as object)).not.toContain('closedAt');
    await stage.redis.del(`${stage.keyspace}:{default:ci-1}:state`);
    expect(await list({ all: true })).toEqual(all.slice(1));
  });

  test('are listed once, as open, if they are opened again after a close', async () => {
    const fleet = await stage.connect({ tenant: 'again' });
    await (await fleet.session('s')).close();
    const score = (await stage.redis.zscore(tenantKeys(stage.keyspace, 'again').index, 's')) ?? '';
    await forget(stage.redis, sessionKeys(stage.keyspace, 'again', 's'), score, 60_000);
    expect(await (await fleet.session('s', { labels: { run: '2' } })).info()).toMatchObject({ labels: { run: '2' } });
    const listed = await Array.fromAsync(fleet.sessions({ all: true }));
    expect(listed.map(({ id, state, closedAt }) => ({ id, state, closedAt }))).toEqual([
      { id: 's', state: 'queued', closedAt: undefined },
    ]);
    expect(await Array.fromAsync(fleet.sessions({ state: 'closed' }))).toEqual([]);
  });

  test('are listed in the order of their ids, after one of them', async () => {
    const fleet = await stage.connect({ tenant: 'ordered' });
    for (const id of ['c', 'a', 'd', 'b']) await fleet.session(id);
    await (await fleet.session('c')).close();
    const list = async (after: string) =>
      (await Array.fromAsync(fleet.sessions({ after, all: true }))).map(({ id }) => id);
    expect([await list(''), await list('b'), await list('d')]).toEqual([['a', 'b', 'c', 'd'], ['c', 'd'], []]);
  });

  test.each<[object, RegExp]>([
    [{ state: 'open' }, /state: must be one of queued, starting/],
    [{ labels: { 'a b': 'c' } }, /labels/],
    [{ every: true }, /every.*unknown/],
  ])('cannot be listed with the filter %j', async (filter, message) => {
    const fleet = await stage.connect();
    await expect(Array.fromAsync(fleet.sessions(filter))).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringMatching(message),
    });
  });

  test('end a file operation at its signal while they wait for a slot', async () => {
    await using empty = await setClientStage();
    const { files } = await (await empty.connect()).session('waits');
    const reason = new Error('enough');
    for (const call of [files.readText.bind(files, '/x'), files.write.bind(files, '/x', 'y')]) {
      const stop = new AbortController();
      const ended = call({ signal: stop.signal });
      setTimeout(() => stop.abort(reason), 200);
      await expect(ended).rejects.toBe(reason);
    }
  });

  test('close at the end of their block, also after an exception', async () => {
    const fleet = await stage.connect();
    let running: Promise<{ outcome: string }> | undefined;
    const block = async () => {
      await using session = await fleet.session('of-a-block');
      running = (await session.submit('sleep 60')).result();
      throw new Error('of the block');
    };
    await expect(block()).rejects.toThrow('of the block');
    expect((await running)?.outcome).toBe('cancellation');
    expect((await (await fleet.attach('of-a-block'))?.info())?.state).toBe('closed');
  });
});
