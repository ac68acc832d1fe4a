import {
  adopt,
  close,
  declare,
  finish,
  hold,
  type Owner,
  peek,
  release,
  type Submission,
  submit,
  take,
  toRung,
  withdraw,
} from '@shellfleet/mailbox';
import { ALIVE_MS, hostKeys, LIMITS, parseWakeUp, type WakeUp, wakeUpsChannel } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { idsOf, outcomesOf, readEvents } from '../support/invariants.ts';
import { finishAs, newSubmission, own } from '../support/mailbox-session.ts';
import { generation, keys, redis, startOne, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

// MAILBOX-6: what `submit` starts in the name of an idle owner by its delegation.

let owner: Owner;
let subscriber: Redis;
let wakeUps: WakeUp[];

beforeEach(async () => {
  owner = { ...(await own(redis, keys)), boot: 'boot-1' };
  subscriber = redis.duplicate();
  wakeUps = [];
  subscriber.on('message', (_channel, message: string) => wakeUps.push(parseWakeUp(message) as WakeUp));
  await subscriber.subscribe(wakeUpsChannel(keys.namespace, keys.tenant, owner.host));
  await beat(ALIVE_MS);
  await claim('boot-1');
});
afterEach(() => subscriber.disconnect());

const beat = (leftMs: number) => redis.set(hostKeys(keys.namespace, owner.host).alive, '{}', 'PX', leftMs);
const claim = (boot: string) => redis.set(hostKeys(keys.namespace, owner.host).boot, `machine-1 ${boot}`);

/** Runs one entry, after which its host finds no next one and is idle. */
async function delegate(of: Owner = owner): Promise<void> {
  const { id } = await startOne(of);
  await finish(of, id, finishAs('success', true));
  wakeUps.length = 0;
}

async function submitOne(fields: Partial<Submission> = {}): Promise<string> {
  const submission = newSubmission(generation, fields);
  expect(await submit(redis, keys, submission)).toEqual({ type: 'accepted', waiting: 0, needsJob: false });
  return submission.entryId;
}

/** Returns the entry in the last wake-up. */
async function carried() {
  await expect.poll(() => wakeUps.at(-1)).toMatchObject({ type: 'session' });
  const last = wakeUps.at(-1);
  return last?.type === 'session' ? last.entry : undefined;
}

/** What the host has in memory about a session in which nothing runs. */
const DECLARED = () => ({
  ...{ generation, spec: 'sealed spec', placementClass: 'docker', placement: '{}', createdAt: 1, driven: false },
  ...{ epoch: 1, epochBase: 0, sandbox: undefined, running: undefined },
});

const started = async () => idsOf(await readEvents(redis, keys), 'command.started').slice(1);

describe('the mailbox call `submit`', () => {
  test('starts an entry for an idle owner, and sends it in the wake-up', async () => {
    await delegate();
    const id = await submitOne({ retry: 'idempotent' });
    expect(await started()).toEqual([id]);
    const taken = await take(owner);
    expect(taken).toMatchObject({ type: 'running', entry: { id, fence: owner.fence, host: owner.host } });
    const rung = toRung((await carried())!, owner);
    expect({ ...rung, type: 'running' }).toEqual(taken);
    expect(rung?.type).toBe('started');
    await finish(owner, id, finishAs('success', true));
    expect(outcomesOf(await readEvents(redis, keys)).get(id)).toBe('success');
  });

  test('starts a single entry even if the call arrives several times', async () => {
    await delegate();
    const first = newSubmission(generation);
    await submit(redis, keys, first);
    expect(await submit(redis, keys, first)).toEqual({ type: 'accepted-before', waiting: 0, needsJob: false });
    const second = await submitOne();
    expect(await started()).toEqual([first.entryId]);
    const finished = await finish(owner, first.entryId, finishAs('success', true));
    expect(finished).toMatchObject({ type: 'finished', next: { type: 'started', entry: { id: second } } });
  });

  test('leaves a long payload in the mailbox', async () => {
    await delegate();
    const payload = 'x'.repeat(LIMITS.wakeUpPayloadBytes + 1);
    const id = await submitOne({ payload });
    expect(await carried()).toBeUndefined();
    expect(await take(owner)).toMatchObject({ type: 'running', entry: { id, payload } });
  });

  test.each<[string, () => Promise<unknown>]>([
    ['whose last heartbeat is older than a second', () => beat(ALIVE_MS - 1_500)],
    ['without a heartbeat', () => redis.del(hostKeys(keys.namespace, owner.host).alive)],
    ['that does not listen any more', () => subscriber.unsubscribe()],
    ['whose process has changed', () => claim('boot-2')],
    ['whose claim has expired', () => redis.del(hostKeys(keys.namespace, owner.host).boot)],
    ['that has withdrawn its delegation', () => withdraw(owner)],
    ['that has adopted the session again', () => adopt(owner)],
    ['that has declared the session', () => declare(owner, DECLARED())],
  ])('starts nothing in the name of a host %s', async (_name, change) => {
    await delegate();
    await change();
    const id = await submitOne();
    expect(await started()).toEqual([]);
    expect(await peek(owner)).toMatchObject({ runnable: true, entry: { id } });
    expect(await take(owner)).toMatchObject({ type: 'started', entry: { id } });
  });

  test('starts nothing for a new owner without a delegation', async () => {
    await delegate();
    const next = { ...(await own(redis, keys, 'h2')), boot: 'boot-1' };
    await adopt(next);
    await redis.set(hostKeys(keys.namespace, 'h2').boot, 'machine-1 boot-1');
    await redis.set(hostKeys(keys.namespace, 'h2').alive, '{}', 'PX', ALIVE_MS);
    await subscriber.subscribe(wakeUpsChannel(keys.namespace, keys.tenant, 'h2'));
    await submitOne();
    expect(await started()).toEqual([]);
  });

  test('starts nothing if the host decides about entries, and sends the head', async () => {
    owner = { ...owner, admission: 'digest' };
    const first = newSubmission(generation);
    await submit(redis, keys, first);
    await finish(owner, first.entryId, finishAs('success', true));
    wakeUps.length = 0;
    const id = await submitOne();
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([]);
    expect(toRung((await carried())!, owner)).toMatchObject({ type: 'needs-admission', entry: { id } });
  });

  test('starts nothing after a finish that did not take the next entry', async () => {
    const { id } = await startOne(owner);
    await finish(owner, id, finishAs('success'));
    await submitOne();
    expect(await started()).toEqual([]);
  });

  test('does not overtake a held head', async () => {
    await delegate();
    await withdraw(owner);
    const held = await submitOne();
    await hold(owner, held, 'digest', {});
    const behind = newSubmission(generation);
    expect(await submit(redis, keys, behind)).toMatchObject({ type: 'accepted', waiting: 1 });
    expect(await started()).toEqual([]);
  });
});

describe('a delegated start', () => {
  test('is returned by `withdraw`, so that the owner runs the entry first', async () => {
    await delegate();
    const id = await submitOne();
    const withdrawn = await withdraw(owner);
    expect(withdrawn).toMatchObject({ type: 'running', entry: { id, payload: 'sealed payload' } });
    expect(await withdraw(owner)).toEqual(withdrawn);
    expect(await withdraw({ ...owner, fence: owner.fence + 1 })).toEqual({ type: 'fenced' });
  });

  test('prevents the release of the session', async () => {
    await delegate();
    await submitOne();
    expect(await release(owner, 'queued')).toEqual({ type: 'busy' });
  });

  test('is cancelled by a close, after which nothing starts', async () => {
    await delegate();
    const id = await submitOne();
    expect(await close(redis, keys, generation, false)).toMatchObject({ type: 'closing', host: owner.host });
    expect(await submit(redis, keys, newSubmission(generation))).toEqual({ type: 'closed' });
    expect(await withdraw(owner)).toMatchObject({ type: 'running', entry: { id, cancelReason: 'session closed' } });
  });
});

describe('a wake-up for an earlier owner', () => {
  test('is ignored', async () => {
    await delegate();
    await submitOne();
    expect(toRung((await carried())!, { fence: owner.fence + 1, host: owner.host })).toBeUndefined();
  });
});
