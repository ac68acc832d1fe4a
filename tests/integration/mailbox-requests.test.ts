import {
  adopt,
  cancel,
  close,
  finish,
  readCancelRequest,
  readCloseRequest,
  refuseRequest,
  submit,
  take,
} from '@shellfleet/mailbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  connectTestRedis,
  finishAs,
  newKeys,
  newSubmission,
  openSession,
  own,
  type TestRedis,
} from '../support/mailbox-session.ts';

// What a client requests from a host outside the mailbox, and how a host takes back requests that no client has signed.

let connected: TestRedis;
beforeAll(async () => {
  connected = await connectTestRedis();
});
afterAll(() => connected[Symbol.asyncDispose]());

async function running() {
  const { redis } = connected;
  const keys = newKeys();
  const generation = await openSession(redis, keys);
  const [first, second] = [newSubmission(generation), newSubmission(generation)];
  for (const submission of [first, second]) await submit(redis, keys, submission);
  const owner = await own(redis, keys);
  await take(owner);
  return { redis, keys, owner, first: first.entryId, second: second.entryId };
}

describe('a request that the host takes back', () => {
  test('leaves the entry uncancelled, unless a genuine cancellation has arrived', async () => {
    const { redis, keys, owner, first } = await running();
    await cancel(redis, keys, first, 'forged');
    expect(await readCancelRequest(owner, first)).toBe('');
    expect(await finish(owner, first, finishAs('success'))).toEqual({ type: 'cancelled', reason: 'forged' });
    expect(await refuseRequest({ ...owner, host: 'other' }, { entryId: first, signed: '' })).toEqual({
      type: 'fenced',
    });
    expect(await refuseRequest(owner, { entryId: first, signed: '' })).toEqual({ type: 'taken-back' });
    expect(await refuseRequest(owner, { entryId: first, signed: '' })).toEqual({ type: 'taken-back' });

    await cancel(redis, keys, first, 'forged again');
    await cancel(redis, keys, first, 'wanted', 'signed');
    expect(await refuseRequest(owner, { entryId: first, signed: '' })).toEqual({ type: 'changed' });
    expect(await readCancelRequest(owner, first)).toBe('signed');
    await refuseRequest(owner, { entryId: first, signed: 'signed' });
    expect(await finish(owner, first, finishAs('success'))).toMatchObject({ type: 'finished' });
  });

  test('leaves the generation open, although its waiting entries have ended', async () => {
    const { redis, keys, owner, first, second } = await running();
    const closed = await close(redis, keys, undefined, false);
    expect(closed).toMatchObject({ type: 'closing', signed: '', ended: [{ entryId: second }] });
    expect(await readCloseRequest(owner)).toEqual({ isClosing: true, signed: '' });
    expect(await refuseRequest(owner, { signed: 'another' })).toEqual({ type: 'changed' });
    expect(await refuseRequest(owner, { signed: '' })).toEqual({ type: 'taken-back' });
    expect(await readCloseRequest(owner)).toEqual({ isClosing: false, signed: '' });
    await refuseRequest(owner, { entryId: first, signed: '' });
    expect(await finish(owner, first, finishAs('success'))).toMatchObject({ type: 'finished' });
    expect(await submit(redis, keys, newSubmission(closed.generation))).toMatchObject({ type: 'accepted' });
  });
});

describe('a signed close', () => {
  test('is stored with its generation for the next owner', async () => {
    const { redis, keys, owner } = await running();
    const { generation, signed } = await close(
      redis,
      keys,
      undefined,
      false,
      (generation_) => `close of ${generation_}`,
    );
    expect(signed).toBe(`close of ${generation}`);
    expect(await adopt(owner)).toMatchObject({ phase: 'closing' });
    expect(await readCloseRequest(owner)).toEqual({ isClosing: true, signed });
  });
});
