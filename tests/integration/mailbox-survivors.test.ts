import {
  addLate,
  announce,
  append,
  appendTerminalInput,
  appendTerminalOutput,
  close,
  finish,
  sweep,
  take,
} from '@shellfleet/mailbox';
import { recordKey } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { outcomesOf, readEvents } from '../support/invariants.ts';
import { atTheStart, finishAs, openSession, own, pieceAfter, submitSome } from '../support/mailbox-session.ts';
import { generation, keys, redis, startOne, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

// Each test detects a fault in the scripts that mutation tests have planted and no other test detected.

describe('the mailbox scripts', () => {
  test('store nothing of an unreachable host after the close of its session', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const terminal = ulid();
    await appendTerminalInput(redis, keys, { terminal, generation, begin: true, number: 1, read: 0, messages: [] });
    expect((await close(redis, keys, generation, true)).type).toBe('closed');
    const before = await readEvents(redis, keys);
    const piece = pieceAfter(atTheStart, 'late');
    const output = { terminal, taken: 0, number: 1, rawTo: 1, messages: ['late'] };
    const shell = { epoch: 1, epochBase: 0, status: 'ready' } as const;
    expect([
      await announce(owner, shell, { type: 'session.opened', data: {} }),
      await addLate(owner, entry.id, [piece]),
      await append(owner, entry.id, [piece]),
      await appendTerminalOutput(owner, output),
      await take(owner),
      await finish(owner, entry.id, finishAs('success')),
    ]).toEqual(Array.from({ length: 6 }, () => ({ type: 'fenced' })));
    expect(await readEvents(redis, keys)).toEqual(before);
  });

  test('remove the expiry of state and stream at a submit to a reopened session', async () => {
    await submitSome(redis, keys, generation, 1);
    await close(redis, keys, generation, false);
    expect(await redis.pttl(keys.stream)).toBeGreaterThan(0);
    const next = await openSession(redis, keys);
    expect(await redis.pttl(keys.state)).toBeGreaterThan(0);
    await submitSome(redis, keys, next, 1);
    expect([await redis.pttl(keys.state), await redis.pttl(keys.stream)]).toEqual([-1, -1]);
  });

  test('return an overdue head unstarted, and then start the next entry', async () => {
    const owner = await own(redis, keys);
    const [first = '', late = '', last = ''] = await submitSome(redis, keys, generation, 3);
    await take(owner);
    await redis.hset(recordKey(keys, late), 'deadline', 1);
    expect(await finish(owner, first, finishAs('success', true))).toMatchObject({
      next: { type: 'overdue', entry: { id: late, startedAt: 0 } },
    });
    expect(await take(owner)).toMatchObject({ type: 'overdue', entry: { id: late } });
    expect(await finish(owner, late, finishAs('timeout', true))).toMatchObject({
      next: { type: 'started', entry: { id: last } },
    });
    expect((await sweep(redis, keys)).ended).toEqual([]);
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(
      new Map([
        [first, 'success'],
        [late, 'timeout'],
      ]),
    );
  });
});
