import type { StoredSession } from '@shellfleet/mailbox';
import { newSessionJob, type SessionJobs } from '@shellfleet/placement';
import { fleetKeys, LIMITS, sessionKeys } from '@shellfleet/protocol';
import { pino } from 'pino';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { FoundSession } from './read-due.ts';
import { reconcile } from './reconcile.ts';
import type { UpkeepMemory } from './upkeep-deps.ts';

const calls = vi.hoisted(() => ({
  answerHeld: vi.fn(async () => ({ type: 'released', needsJob: true })),
  forget: vi.fn(async () => true),
  isAsking: vi.fn(async () => true),
  notify: vi.fn(async () => {}),
  postpone: vi.fn(async () => true),
  recordNotice: vi.fn(async () => true),
  sweep: vi.fn(async () => ({ phase: 'open', ended: [] as { inbox: string; entryId: string; event: string }[] })),
}));
vi.mock('@shellfleet/mailbox', async (original) => ({ ...(await original<object>()), ...calls }));

const keys = sessionKeys('ns', 'acme', 's');
const placement = { policy: 'host' as const, priority: 7, labels: { team: 'build' }, sealedWith: '' };
const waits: StoredSession = {
  ...{ phase: 'open', generation: '3', placementClass: 'host', placement: JSON.stringify(placement), status: 'queued' },
  ...{ host: '', fence: 0, running: '', epoch: 0, createdAt: 0, activeAt: 0, waiting: 1, held: '', hasWork: true },
  ...{ closedAt: 0, closedWith: '', isDiscarded: false, image: undefined, start: '', node: '', waitsFor: '' },
};

const jobs = { has: vi.fn(async () => false), ensure: vi.fn(async () => {}) };
let memory: UpkeepMemory;

beforeEach(() => {
  vi.clearAllMocks();
  const seen = { score: '12', since: performance.now() - 1_000, sweptAt: Number.NEGATIVE_INFINITY };
  memory = {
    ...{ streamBytes: 1_000, position: { tenant: '', cursor: '0' }, turnEndsAt: 0 },
    seen: new Map([[keys.member, seen]]),
  };
});

const NOW = 1_000_000;
const run = (
  state: Partial<StoredSession> | undefined,
  owner: FoundSession['owner'] = '',
  times: { quietMs?: number; retentionMs?: number } = {},
) => {
  const session: FoundSession = { keys, score: '12', state: state && { ...waits, ...state }, owner };
  const deps = {
    redis: {} as never,
    fleet: fleetKeys('ns'),
    hostId: 'h1',
    jobs: jobs as unknown as SessionJobs,
    intervalMs: 1,
  };
  const all = {
    ...deps,
    quietMs: 60_000,
    retentionMs: 100_000,
    sealKeys: [],
    diskQuotas: () => [],
    keyPatienceMs: 0,
    ...times,
  };
  return reconcile(session, NOW, { ...all, logger: pino({ level: 'silent' }) }, memory);
};

describe('upkeep of one session', () => {
  test('adds the job of a session with work but no owner (UPKEEP-1)', async () => {
    await run({});
    expect(jobs.ensure.mock.calls).toEqual([[newSessionJob(keys, '3', placement)]]);
  });

  test.each<[string, Partial<StoredSession>, boolean]>([
    ['that has a job', {}, true],
    ['whose head is held', { hasWork: false, held: 'e1' }, false],
    ['in which nothing waits', { hasWork: false, waiting: 0 }, false],
    ['whose placement in clear is not valid', { placement: '{"policy":7}' }, false],
  ])('adds no job for a session %s', async (_title, state, hasJob) => {
    jobs.has.mockResolvedValueOnce(hasJob);
    await run(state);
    expect(jobs.ensure).not.toHaveBeenCalled();
  });

  test('reports a silent owner under its fence, and adds a job (UPKEEP-2)', async () => {
    await run({ host: 'h1', fence: 5, running: 'e1' }, 'silent');
    expect(calls.recordNotice.mock.calls).toEqual([[{}, keys, 5, 'host.unreachable', { hostId: 'h1' }]]);
    expect(jobs.ensure).toHaveBeenCalledTimes(1);
  });

  test('does not report a live owner, and checks its job only with sweeps', async () => {
    jobs.has.mockResolvedValue(true);
    for (let round = 0; round < 3; round += 1) await run({ host: 'h1', fence: 5, running: 'e1' }, 'alive');
    expect(calls.recordNotice).not.toHaveBeenCalled();
    expect(calls.sweep).toHaveBeenCalledTimes(1);
    expect(jobs.has).toHaveBeenCalledTimes(1);
    jobs.has.mockResolvedValue(false);
  });

  test('sweeps every 5 s with entries, once more without, then every minute', async () => {
    const sweptAfter = async (state: Partial<StoredSession>, ms: number) => {
      const seen = memory.seen.get(keys.member);
      if (seen !== undefined) seen.sweptAt -= ms;
      calls.sweep.mockClear();
      memory.streamBytes = LIMITS.sessionStreamBytes;
      await run({ host: 'h1', fence: 5, ...state }, 'alive');
      return calls.sweep.mock.calls.length;
    };
    const works = { running: 'e1' };
    expect(await sweptAfter(works, 0)).toBe(1);
    expect([await sweptAfter(works, 4_000), await sweptAfter(works, 2_000)]).toEqual([0, 1]);
    expect([await sweptAfter(idle, 4_000), await sweptAfter(idle, 2_000)]).toEqual([0, 1]);
    expect([await sweptAfter(idle, 6_000), await sweptAfter(idle, 55_000)]).toEqual([0, 1]);
  });

  test('reports entries that a sweep ended to their producers (UPKEEP-3)', async () => {
    calls.sweep.mockResolvedValueOnce({ phase: 'open', ended: [{ inbox: 'p1', entryId: 'e1', event: '9-0' }] });
    await run({});
    const notice = { tenant: 'acme', session: 's', entryId: 'e1', event: '9-0', result: '' };
    expect(calls.notify.mock.calls).toEqual([[{}, 'ns', 'p1', notice]]);
  });

  test.each<[string, Partial<StoredSession> | undefined, number | undefined]>([
    ['closed leaves the index, and is listed as closed for the retention', { phase: 'closed' }, 100_000],
    ['discarded leaves the index, and is not listed', { phase: 'closed', isDiscarded: true }, undefined],
    ['gone leaves the index', undefined, undefined],
  ])('a session that is %s', async (_title, state, listedMs) => {
    await run(state);
    expect(calls.forget.mock.calls).toEqual([[{}, keys, '12', listedMs]]);
    expect(jobs.ensure).not.toHaveBeenCalled();
  });

  const idle = { hasWork: false, waiting: 0, activeAt: NOW - 90_000 };

  test.each<[string, Partial<StoredSession>, FoundSession['owner'], unknown[][]]>([
    ['is looked at again when its generation ends', idle, '', [['12', 10_001]]],
    ['is looked at again four times per retention', { ...idle, activeAt: NOW }, '', [['12', 25_000]]],
    ['is looked at in every round while its host is alive', { ...idle, host: 'h1' }, 'alive', []],
    ['is postponed while its host is away', { ...idle, host: 'h1', fence: 5 }, 'silent', [['12', 10_001]]],
    ['is looked at in every round while an entry waits', { ...idle, waiting: 1 }, '', []],
  ])('handles an idle session that nobody noted lately: it %s (UPKEEP-5)', async (_title, state, owner, postponed) => {
    await run(state, owner, { quietMs: 1_000 });
    expect(calls.postpone.mock.calls).toEqual(postponed.map(([score, delayMs]) => [{}, keys, score, delayMs]));
  });

  test('does not postpone an idle session that is not quiet yet or whose generation ended', async () => {
    await run(idle);
    calls.sweep.mockResolvedValueOnce({ phase: 'closed', ended: [] });
    await run(idle, '', { quietMs: 0 });
    expect(calls.postpone).not.toHaveBeenCalled();
  });

  test('counts an owner as gone only when unseen for the retention (UPKEEP-4)', async () => {
    for (const owner of ['silent', 'gone'] as const) {
      await run({ ...idle, host: 'h1', fence: 5 }, owner, { quietMs: 0 });
    }
    const limits = (calls.sweep.mock.calls as unknown[][]).map(([, , given]) => given);
    expect(limits).toEqual([
      { retentionMs: 100_000, streamBytes: 1_000, ownerGone: false },
      { retentionMs: 100_000, streamBytes: 1_000, ownerGone: true },
    ]);
  });

  test('releases a held head that asks nothing in two rounds (UPKEEP-8)', async () => {
    const held = { hasWork: false, held: 'e1' };
    calls.isAsking.mockResolvedValueOnce(false).mockResolvedValueOnce(true);
    await run(held);
    await run(held);
    expect(calls.answerHeld).not.toHaveBeenCalled();
    calls.isAsking.mockResolvedValueOnce(false).mockResolvedValueOnce(false);
    await run(held);
    await run(held);
    expect(calls.answerHeld.mock.calls).toEqual([[{}, keys, 'e1', { type: 'release' }]]);
  });
});
