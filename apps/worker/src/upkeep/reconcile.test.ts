import { newSessionJob, type SessionJobs } from '@shellfleet/admission';
import type { SessionState } from '@shellfleet/mailbox';
import { fleetKeys, sessionKeys } from '@shellfleet/protocol';
import { pino } from 'pino';
import { beforeEach, expect, test, vi } from 'vitest';
import type { FoundSession } from './read-page.ts';
import { reconcile } from './reconcile.ts';
import type { UpkeepMemory } from './upkeep-deps.ts';

const calls = vi.hoisted(() => ({
  forget: vi.fn(async () => true),
  notify: vi.fn(async () => {}),
  recordNotice: vi.fn(async () => true),
  sweep: vi.fn(async () => ({ ended: [] as { inbox: string; entryId: string; event: string }[] })),
}));
vi.mock('@shellfleet/mailbox', async (original) => ({ ...(await original<object>()), ...calls }));

const keys = sessionKeys('ns', 'acme', 's');
const placement = { policy: 'host' as const, priority: 7, labels: { team: 'build' } };
const waits: SessionState = {
  ...{ life: 'open', generation: '3', placementClass: 'host', placement: JSON.stringify(placement), status: 'queued' },
  ...{ host: '', fence: 0, running: '', epoch: 0, createdAt: 0, activeAt: 0, waiting: 1, held: '', hasWork: true },
};

const jobs = { has: vi.fn(async () => false), ensure: vi.fn(async () => {}) };
let memory: UpkeepMemory;

beforeEach(() => {
  vi.clearAllMocks();
  memory = { streamBytes: 1_000, sweptAt: new Map() };
});

const run = (state: Partial<SessionState> | undefined, hostAlive = false) => {
  const session: FoundSession = { keys, score: '12', state: state && { ...waits, ...state }, hostAlive };
  const deps = { redis: {} as never, fleet: fleetKeys('ns'), jobs: jobs as unknown as SessionJobs, intervalMs: 1 };
  return reconcile(session, { ...deps, logger: pino({ level: 'silent' }) }, memory);
};

test('a session with work, but neither owner nor job, gets a job of its class, with its priority and labels (UPKEEP-1)', async () => {
  await run({});
  expect(jobs.ensure.mock.calls).toEqual([[newSessionJob(keys, '3', placement)]]);
});

test.each<[string, Partial<SessionState>, boolean]>([
  ['that has a job', {}, true],
  ['whose head is held', { hasWork: false, held: 'e1' }, false],
  ['in which nothing waits', { hasWork: false, waiting: 0 }, false],
  ['whose placement in clear is not valid', { placement: '{"policy":"docker"}' }, false],
])('a session %s gets none', async (_title, state, hasJob) => {
  jobs.has.mockResolvedValueOnce(hasJob);
  await run(state);
  expect(jobs.ensure).not.toHaveBeenCalled();
});

test('a silent owner is reported under its fence, and its session gets a job again (UPKEEP-2)', async () => {
  await run({ host: 'h1', fence: 5, running: 'e1' });
  expect(calls.recordNotice.mock.calls).toEqual([[{}, keys, 5, 'host.unreachable', { hostId: 'h1' }]]);
  expect(jobs.ensure).toHaveBeenCalledTimes(1);
});

test('a live owner is not reported; whether its job is still there is looked up with each sweep only', async () => {
  jobs.has.mockResolvedValue(true);
  for (let round = 0; round < 3; round += 1) await run({ host: 'h1', fence: 5, running: 'e1' }, true);
  expect(calls.recordNotice).not.toHaveBeenCalled();
  expect(calls.sweep).toHaveBeenCalledTimes(1);
  expect(jobs.has).toHaveBeenCalledTimes(1);
  jobs.has.mockResolvedValue(false);
});

test('entries that a sweep ended are reported to their producers (UPKEEP-3)', async () => {
  calls.sweep.mockResolvedValueOnce({ ended: [{ inbox: 'p1', entryId: 'e1', event: '9-0' }] });
  await run({});
  const notice = { tenant: 'acme', session: 's', entryId: 'e1', event: '9-0', result: '' };
  expect(calls.notify.mock.calls).toEqual([[{}, 'ns', 'p1', notice]]);
});

test.each([
  ['closed', { life: 'closed' as const }],
  ['gone', undefined],
])('a session that is %s leaves the index', async (_title, state) => {
  memory.sweptAt.set(keys.member, 1);
  await run(state);
  expect(calls.forget.mock.calls).toEqual([[{}, fleetKeys('ns'), keys.member, '12']]);
  expect([...memory.sweptAt]).toEqual([]);
  expect(jobs.ensure).not.toHaveBeenCalled();
});
