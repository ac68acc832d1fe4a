import { EventEmitter } from 'node:events';
import { SharedTimer } from '@shellfleet/concurrency';
import { type Submitted, submit } from '@shellfleet/mailbox';
import {
  type CommandPayload,
  fleetKeys,
  LIMITS,
  newResult,
  sessionKeys,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import { createSealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createIds } from '../connection/connection.ts';
import { SendWindow, SubmitBudget } from '../queue/send-window.ts';
import { PendingResults } from '../results/pending-results.ts';
import { Interceptors, type SubmitInterceptor } from './interceptors.ts';
import type { OpenSession } from './open-session.ts';
import { type SubmitContext, sendEntry } from './send-entry.ts';

vi.mock(import('@shellfleet/mailbox'), async (original) => ({ ...(await original()), submit: vi.fn() }));

const keys = sessionKeys('ns', 'tenant', 's');
const payload: CommandPayload = { type: 'command', script: 'true', timeoutMs: 1, killGraceMs: 0, encoding: 'utf8' };
const accepted: Submitted = { type: 'accepted', waiting: 0, needsJob: true };
const wire = JSON.stringify(newResult({ outcome: 'success', exitCode: 0, reason: 'exited' }));

let pending: PendingResults;
let session: OpenSession;
let ensureJob: ReturnType<typeof vi.fn<SubmitContext['ensureJob']>>;
beforeEach(() => {
  vi.useFakeTimers();
  pending = new PendingResults({} as Redis, { changes: 0 }, new SharedTimer(60_000));
  const spec = sessionSpecSchema.parse({});
  session = {
    id: 's',
    keys,
    generation: '1-0',
    spec,
    bounds: spec,
    driven: false,
    created: false,
    sealedWith: '',
    indexedAt: Date.now(),
  };
  ensureJob = vi.fn(async () => {});
});
afterEach(() => {
  pending.close(new Error('over') as never);
  vi.useRealTimers();
  vi.resetAllMocks();
});

function contextWith(
  options: { room?: number; interceptors?: SubmitInterceptor[]; durability?: SubmitContext['durability'] } = {},
): SubmitContext {
  const context = {
    redis: {} as Redis,
    namespace: 'ns',
    tenant: 'tenant',
    fleet: fleetKeys('ns'),
    sealer: createSealer([Buffer.alloc(32, 1).toString('base64')]),
    inboxId: 'inbox',
    durability: options.durability ?? { mode: 'none', readAt: 0, confirm: async () => {} },
    pending,
    budget: new SubmitBudget(),
    window: new SendWindow(options.room ?? 10),
    interceptors: new Interceptors(options.interceptors ?? []),
    nextId: createIds(),
    ensureJob,
    openInbox: async () => {},
  } satisfies Partial<SubmitContext>;
  return context as unknown as SubmitContext;
}

const submittedIds = () => vi.mocked(submit).mock.calls.map(([, , { entryId }]) => entryId);

describe('sendEntry', () => {
  // SUBMIT-1
  test('submits before the call returns when there are no interceptors', () => {
    vi.mocked(submit).mockResolvedValue(accepted);
    const context = contextWith();
    void sendEntry(context, session, payload);
    void sendEntry(context, session, payload);
    expect(submittedIds()).toHaveLength(2);
    expect(submittedIds()).toEqual(submittedIds().toSorted());
  });

  test('keeps no timer after five submits under one idempotency key have their Result', async () => {
    const context = contextWith();
    vi.mocked(submit).mockImplementation(async (_redis, _keys, { entryId }) => {
      const [first = entryId] = submittedIds();
      return entryId === first ? accepted : { type: 'deduplicated', entryId: first };
    });
    const options = { idempotencyKey: 'key' };
    const sent = await Promise.all(Array.from({ length: 5 }, () => sendEntry(context, session, payload, options)));
    expect(sent.map(({ deduplicated }) => deduplicated)).toEqual([false, true, true, true, true]);
    expect(new Set(sent.map(({ pending: entry }) => entry)).size).toBe(1);
    const [entryId = ''] = submittedIds();
    await pending.notice({ tenant: 'tenant', session: 's', entryId, event: '1-1', result: wire });
    await Promise.all(sent.map(({ pending: entry }) => entry.result()));
    expect(vi.getTimerCount()).toBe(0);
  });

  // BUDGET-1
  test('refuses a submit beyond the budget, and frees the room of ended and refused entries', async () => {
    const context = contextWith();
    for (let index = 1; index < LIMITS.producerPending; index++) context.budget.take(payload);
    vi.mocked(submit)
      .mockResolvedValueOnce({ type: 'closed' })
      .mockResolvedValueOnce({ type: 'deduplicated', entryId: 'other' })
      .mockResolvedValue(accepted);
    await expect(sendEntry(context, session, payload)).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
    await sendEntry(context, session, payload);
    const { pending: entry } = await sendEntry(context, session, payload);
    await expect(sendEntry(context, session, payload)).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      retryable: true,
    });
    expect(submittedIds()).toHaveLength(3);
    await pending.notice({ tenant: 'tenant', session: 's', entryId: entry.entryId, event: '1-1', result: wire });
    await sendEntry(context, session, payload);
    expect(submittedIds()).toHaveLength(4);
  });

  test('keeps an entry pending, unaccepted and unsent while the window is full', async () => {
    const answer = Promise.withResolvers<Submitted>();
    vi.mocked(submit).mockReturnValueOnce(answer.promise).mockResolvedValue(accepted);
    const context = contextWith({ room: 1 });
    const first = sendEntry(context, session, payload);
    const second = sendEntry(context, session, payload);
    expect(submittedIds()).toHaveLength(1);
    await pending.look();
    expect(submittedIds()).toHaveLength(1);
    answer.resolve(accepted);
    expect((await Promise.all([first, second])).map(({ pending: entry }) => entry.accepted)).toEqual([true, true]);
  });

  test.each<[string, Submitted, string]>([
    ['closed', { type: 'closed' }, 'SESSION_CLOSED'],
    ['unknown', { type: 'unknown-session' }, 'SESSION_NOT_FOUND'],
    ['full', { type: 'too-many', waiting: 100_000 }, 'QUOTA_EXCEEDED'],
    ['full of large commands', { type: 'too-large', waiting: 200, bytes: 268_000_000 }, 'QUOTA_EXCEEDED'],
    ['given another payload under the key', { type: 'key-conflict', entryId: 'other' }, 'IDEMPOTENCY_CONFLICT'],
  ])('refuses the entry and keeps nothing pending when the session is %s', async (_what, answer, code) => {
    vi.mocked(submit).mockResolvedValue(answer);
    await expect(sendEntry(contextWith(), session, payload)).rejects.toMatchObject({ code });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('keeps nothing pending when Redis did not accept the entry', async () => {
    vi.mocked(submit).mockRejectedValue(new Error('Command timed out'));
    await expect(sendEntry(contextWith(), session, payload)).rejects.toThrow('Command timed out');
    expect(vi.getTimerCount()).toBe(0);
  });

  // SUBMIT-2
  test('adds a job only when necessary, and succeeds even when adding fails', async () => {
    vi.mocked(submit)
      .mockResolvedValueOnce({ ...accepted, needsJob: false })
      .mockResolvedValue(accepted);
    const context = contextWith();
    await sendEntry(context, session, payload);
    expect(ensureJob).not.toHaveBeenCalled();
    ensureJob.mockRejectedValueOnce(new Error('away'));
    const { pending: entry } = await sendEntry(context, session, payload);
    expect(ensureJob).toHaveBeenCalledTimes(1);
    expect(entry.accepted).toBe(true);
  });

  test('refuses a durable submit before sending when Redis cannot promise durability', async () => {
    await expect(sendEntry(contextWith(), session, payload, { durable: true })).rejects.toMatchObject({
      code: 'DURABLE_UNSUPPORTED',
    });
    expect(submit).not.toHaveBeenCalled();
  });

  test('rejects a durable submit when a replaced Redis cannot confirm the write', async () => {
    vi.mocked(submit).mockResolvedValue(accepted);
    const confirm = vi.fn(async () => {
      throw new Error('another Redis');
    });
    const context = contextWith({ durability: { mode: 'always', readAt: 0, confirm } });
    await sendEntry(context, session, payload);
    expect(confirm).not.toHaveBeenCalled();
    await expect(sendEntry(context, session, payload, { durable: true })).rejects.toThrow('another Redis');
    expect(submittedIds()).toHaveLength(2);
  });

  test.each<[string, Submitted['type'], string[]]>([
    ['after each sending', 'accepted', ['submit', 'WAITAOF', 'submit', 'WAITAOF']],
    ['after a write of its own if it found an entry', 'deduplicated', ['submit', 'WAITAOF', 'lpush', 'WAITAOF']],
    ['after a write of its own if it came twice', 'accepted-before', ['submit', 'WAITAOF', 'lpush', 'WAITAOF']],
  ])('waits for the disk with a durable submit %s', async (_when, type, calls) => {
    const made: string[] = [];
    vi.mocked(submit).mockImplementation(async (_redis, _keys, _submission, onSent) => {
      for (let sending = 0; sending < (type === 'accepted' ? 2 : 1); sending++) {
        made.push('submit');
        onSent?.();
      }
      return { ...accepted, type, entryId: 'other' } as Submitted;
    });
    const redis = Object.assign(new EventEmitter(), {
      zadd: async () => 1,
      async lpush() {
        made.push('lpush');
      },
      async call(name: string) {
        made.push(name);
        return [1, 0];
      },
    });
    const context = contextWith({ durability: { mode: 'wait', readAt: 0, confirm: async () => {} } });
    await sendEntry({ ...context, redis: redis as unknown as Redis }, session, payload, { durable: true });
    expect([made, redis.listenerCount('close')]).toEqual([calls, 0]);
  });

  test('neither sends nor keeps an entry that an interceptor refuses', async () => {
    const context = contextWith({ interceptors: [() => Promise.reject(new Error('no'))] });
    await expect(sendEntry(context, session, payload)).rejects.toMatchObject({ code: 'INTERCEPTOR_FAILED' });
    expect(submit).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});
