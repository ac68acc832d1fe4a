import {
  adopt,
  announce,
  append,
  close,
  finish,
  open,
  recordNotice,
  release,
  rerun,
  submit,
  take,
} from '@shellfleet/mailbox';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { idsOf, outcomesOf, readEvents } from '../support/invariants.ts';
import {
  acquireFor,
  finishAs,
  newKeys,
  newSubmission,
  own,
  pieceAfter,
  submitSome,
} from '../support/mailbox-session.ts';
import { generation, keys, redis, startOne, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

const typesOf = async () => (await readEvents(redis, keys)).map(({ type }) => type);

describe('the mailbox call `adopt`', () => {
  test('returns the running entry and its stored output under a newer fence', async () => {
    const first = await own(redis, keys, 'h1');
    const entry = await startOne(first);
    await append(first, entry.id, [pieceAfter(entry, 'half')]);
    await submitSome(redis, keys, generation, 2);
    const second = { ...(await own(redis, keys, 'h2')) };
    const adopted = await adopt(second);
    expect(adopted).toMatchObject({
      type: 'adopted',
      phase: 'open',
      generation,
      spec: 'sealed spec',
      waiting: 2,
      previousHost: 'h1',
      running: {
        id: entry.id,
        payload: 'sealed payload',
        offsets: { stdout: 4, stderr: 0 },
        seq: 1,
        fence: first.fence,
        host: 'h1',
      },
    });
  });

  test('keeps the state and stream of a reopened session in use', async () => {
    await own(redis, keys);
    await submitSome(redis, keys, generation, 1);
    await close(redis, keys, generation, true);
    await open(redis, keys, () => 'sealed spec', 'digest');
    // A job of the earlier generation brings the session to a host before anything is submitted to the new one.
    await release(await own(redis, keys, 'h2'), 'queued');
    const expiries = () => Promise.all([redis.pttl(keys.state), redis.pttl(keys.stream)]);
    expect(await expiries()).toEqual([-1, -1]);
  });

  test('returns why the last owner with a shell ended it', async () => {
    const idle = { type: 'session.lost', data: { reason: 'it was idle' } } as const;
    await release(await own(redis, keys), 'lost', idle);
    const owner = await own(redis, keys, 'h2');
    expect(await adopt(owner)).toMatchObject({ loss: 'it was idle' });
    await release(owner, 'queued');
    expect(await adopt(await own(redis, keys, 'h3'))).toMatchObject({ loss: 'it was idle' });
  });

  test.each([
    ['another class', 'an earlier generation', 'wrong-queue'],
    ['another class', 'this generation', 'adopted'],
    ['its class', 'an earlier generation', 'adopted'],
    ['its class', 'this generation', 'adopted'],
  ])('from the queue of %s, for a job of %s, returns %s', async (queue, addedFor, answer) => {
    const placed = newKeys();
    const opened = await open(redis, placed, () => 'sealed spec', 'd', 'any', { placementClass: 'docker', json: '{}' });
    if (opened.type !== 'created') throw new Error(opened.type);
    const job = {
      placementClass: queue === 'its class' ? 'docker' : 'host',
      generation: addedFor === 'this generation' ? opened.generation : 'earlier',
    };
    const owner = await acquireFor(redis, placed, 'h1');
    expect((await adopt(owner, job)).type).toBe(answer);
    expect(await redis.hget(placed.state, 'host')).toBe(answer === 'adopted' ? 'h1' : null);
  });

  test('returns the same when it arrives twice, including the previous owner', async () => {
    await own(redis, keys, 'h1');
    const second = await own(redis, keys, 'h2');
    const [again, oncemore] = [await adopt(second), await adopt(second)];
    expect(again).toMatchObject({ previousHost: 'h1' });
    // The difference of the clocks is measured by each call.
    expect(oncemore).toEqual({ ...again, clockAheadMs: expect.any(Number) });
  });

  // Invariant 1
  test('fences the previous owner out of every call', async () => {
    const first = await own(redis, keys, 'h1');
    const entry = await startOne(first);
    const second = await own(redis, keys, 'h2');
    const before = await readEvents(redis, keys);
    const answers = [
      await take(first),
      await append(first, entry.id, [pieceAfter(entry, 'x')]),
      await finish(first, entry.id, finishAs('success', true)),
      await rerun(first, entry),
      await announce(first, { epoch: 9, epochBase: 0, status: 'ready' }, { type: 'session.opened', data: {} }),
      await release(first, 'queued'),
      await adopt(first),
    ];
    expect(answers).toEqual(Array(7).fill({ type: 'fenced' }));
    expect(await readEvents(redis, keys)).toEqual(before);
    expect(await take(second)).toMatchObject({ type: 'running', entry: { id: entry.id, offsets: { stdout: 0 } } });
  });

  test('refuses an equal fence from another host', async () => {
    const first = await own(redis, keys, 'h1');
    expect(await adopt({ ...first, host: 'h2' })).toEqual({ type: 'fenced' });
    expect(await take(first)).toEqual({ type: 'empty' });
  });

  test('compares fences as numbers', async () => {
    const { fence: _, ...owner } = await own(redis, keys, 'h1');
    expect((await adopt({ ...owner, fence: 99 })).type).toBe('adopted');
    expect((await adopt({ ...owner, fence: 100 })).type).toBe('adopted');
    expect((await adopt({ ...owner, fence: 2 ** 31 + 5 })).type).toBe('adopted');
    expect(await take({ ...owner, fence: 2 ** 31 + 5 })).toEqual({ type: 'empty' });
    expect((await adopt({ ...owner, fence: 101 })).type).toBe('fenced');
  });

  test('is refused under a released fence, so that no ended owner is recorded', async () => {
    const owner = await own(redis, keys, 'h1');
    await release(owner, 'queued');
    expect(await adopt(owner)).toEqual({ type: 'fenced' });
    expect(await submit(redis, keys, newSubmission(generation))).toMatchObject({ type: 'accepted', needsJob: true });
  });

  test('reports `closed` for a session that was never opened', async () => {
    const unknown = newKeys();
    await expect(own(redis, unknown)).rejects.toThrow('closed');
  });
});

describe('the mailbox call `announce`', () => {
  test('adds an event once, however often or late its call arrives', async () => {
    const calls: (() => Promise<unknown>)[] = [];
    const repeating = new Proxy(redis, {
      get: (target, name) =>
        name === 'evalsha'
          ? (...args: Parameters<Redis['evalsha']>) => {
              calls.push(() => target.evalsha(...args));
              return target.evalsha(...args);
            }
          : Reflect.get(target, name),
    });
    const owner = { ...(await own(redis, keys)), redis: repeating };
    const first = { epoch: 1, epochBase: 0 } as const;
    const opened = { type: 'session.opened', data: { hostId: 'h1' } } as const;
    const shell = () => redis.hmget(keys.state, 'epoch', 'status', 'epochBase');
    await announce(owner, { ...first, status: 'starting' });
    await announce(owner, { ...first, status: 'ready' }, opened);
    await announce(owner, { ...first, status: 'ready' }, opened);
    for (const call of calls) await call();
    expect(await shell()).toEqual(['1', 'ready', '0']);
    await announce(owner, { ...first, status: 'starting' }, { type: 'session.lost', data: {} });
    for (const call of calls) await call();
    expect(await shell()).toEqual(['1', 'starting', '0']);
    await announce(owner, { epoch: 2, epochBase: 1, status: 'ready' });
    for (const call of calls) await call();
    expect(await shell()).toEqual(['2', 'ready', '1']);
    expect(await typesOf()).toEqual(['session.opened', 'session.lost']);
  });

  test('adds the event again for a newer owner', async () => {
    const shell = { epoch: 1, epochBase: 0, status: 'ready' } as const;
    await announce(await own(redis, keys, 'h1'), shell, { type: 'session.adopted', data: {} });
    await announce(await own(redis, keys, 'h1'), shell, { type: 'session.adopted', data: {} });
    expect(await typesOf()).toEqual(['session.adopted', 'session.adopted']);
  });
});

describe('the shell for an adopter', () => {
  const ready = (sandbox: string) => ({ epoch: 1, epochBase: 0, status: 'ready', sandbox }) as const;
  const shellOf = async (host: string) => {
    const adopted = await adopt(await own(redis, keys, host));
    return adopted.type === 'adopted' ? adopted.shell : adopted.type;
  };

  test('is the last shell that was ready, even after several owners', async () => {
    await announce(await own(redis, keys, 'h1'), ready('c1'));
    expect(await shellOf('h2')).toEqual({ host: 'h1', sandbox: 'c1' });
    await announce(await own(redis, keys, 'h2'), { epoch: 1, epochBase: 0, status: 'starting' });
    expect(await shellOf('h1')).toEqual({ host: 'h1', sandbox: 'c1' });
    await announce(await own(redis, keys, 'h2'), { ...ready('c2'), epoch: 2 });
    expect(await shellOf('h1')).toEqual({ host: 'h2', sandbox: 'c2' });
  });

  test('is undefined before the first shell, after a release and after a second start', async () => {
    expect(await shellOf('h1')).toBeUndefined();
    const first = await own(redis, keys, 'h1');
    await announce(first, ready('c1'));
    await release(first, 'queued');
    expect(await shellOf('h1')).toBeUndefined();
    const second = await own(redis, keys, 'h1');
    await announce(second, ready('c2'));
    const entry = await startOne(second, { retry: 'idempotent' });
    await rerun(await own(redis, keys, 'h2'), entry);
    expect(await shellOf('h1')).toBeUndefined();
  });
});

describe('the mailbox call `release`', () => {
  test('ends the ownership once, and returns the same when it arrives twice', async () => {
    const owner = await own(redis, keys);
    const lost = { type: 'session.lost', data: { reason: 'idle' } } as const;
    expect(await release(owner, 'lost', lost)).toEqual({ type: 'released', phase: 'open' });
    expect(await release(owner, 'lost', lost)).toEqual({ type: 'released', phase: 'open' });
    expect(await typesOf()).toEqual(['session.lost']);
    expect(await redis.hmget(keys.state, 'host', 'status')).toEqual([null, 'lost']);
  });

  test('is refused while an entry runs or waits', async () => {
    const owner = await own(redis, keys);
    const [id] = await submitSome(redis, keys, generation, 1);
    expect(await release(owner, 'queued')).toEqual({ type: 'busy' });
    await take(owner);
    expect(await release(owner, 'queued')).toEqual({ type: 'busy' });
    await finish(owner, id ?? '', finishAs('success'));
    expect((await release(owner, 'queued')).type).toBe('released');
  });

  test('does not affect a newer owner when it arrives late', async () => {
    const first = await own(redis, keys, 'h1');
    const second = await own(redis, keys, 'h2');
    expect(await release(first, 'queued')).toEqual({ type: 'fenced' });
    expect(await take(second)).toEqual({ type: 'empty' });
  });

  test('ends the generation of a closing session, and cancels its waiting entries', async () => {
    const owner = await own(redis, keys);
    const ids = await submitSome(redis, keys, generation, 3);
    await redis.hset(keys.state, 'phase', 'closing');
    expect(await release(owner, 'queued')).toEqual({ type: 'released', phase: 'closed' });
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(new Map(ids.map((id) => [id, 'cancellation'])));
    expect((await typesOf()).at(-1)).toBe('session.closed');
  });
});

describe('the mailbox call `recordNotice`', () => {
  test('adds an event once for each type and fence of the present owner', async () => {
    const owner = await own(redis, keys);
    expect(await recordNotice(redis, keys, owner.fence - 1, 'host.unreachable', {})).toBe(false);
    expect(await recordNotice(redis, keys, owner.fence, 'host.unreachable', {})).toBe(true);
    expect(await recordNotice(redis, keys, owner.fence, 'host.unreachable', {})).toBe(false);
    const next = await own(redis, keys, 'h2');
    expect(await recordNotice(redis, keys, next.fence, 'host.unreachable', {})).toBe(true);
    await release(next, 'queued');
    expect(await recordNotice(redis, keys, next.fence, 'host.unreachable', {})).toBe(false);
    expect(await typesOf()).toEqual(['host.unreachable', 'host.unreachable']);
  });
});

describe('a host that owned an earlier generation', () => {
  test('cannot affect the next one', async () => {
    const owner = await own(redis, keys, 'h1');
    const entry = await startOne(owner);
    await close(redis, keys, generation, true);
    const next = await open(redis, keys, () => 'another spec', 'another digest');
    if (next.type !== 'created') throw new Error(next.type);
    const submission = newSubmission(next.generation);
    await submit(redis, keys, submission);
    expect([await adopt(owner), await take(owner), await finish(owner, entry.id, finishAs('success', true))]).toEqual(
      Array(3).fill({ type: 'fenced' }),
    );
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([entry.id]);
  });
});
