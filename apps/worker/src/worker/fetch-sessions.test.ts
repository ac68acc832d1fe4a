import { Notifier } from '@shellfleet/concurrency';
import type { SessionJob, SessionJobs } from '@shellfleet/placement';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { fetchSessions } from './fetch-sessions.ts';
import type { OpenWorker } from './open-worker.ts';

const job = (session: string): SessionJob => ({ tenant: 't', session }) as SessionJob;

/** Fetches until `served` sessions are served; `locked` are the jobs that Redis has locked for this host. */
async function fetchAll(
  fetches: (SessionJob[] | Error)[],
  locked: SessionJob[],
  served: number,
  admits = () => 1,
  places = 100,
) {
  const stopping = new AbortController();
  const sessions = new Map<string, SessionJob>([['served', job('served')]]);
  const jobs = {
    fetch: vi.fn<SessionJobs['fetch']>(async () => {
      const next = fetches.shift();
      if (next instanceof Error) throw next;
      return next ?? [];
    }),
    listOwn: vi.fn(async () => locked),
    nextWishEndMs: () => undefined,
  };
  const logger = pino({ level: 'silent' });
  const worker = {
    host: { jobs, logger, settings: { slots: 10 } },
    gate: { admits, taken: () => {}, places: () => places },
    isDraining: () => false,
    sessions: {
      get size() {
        return sessions.size;
      },
      countByTenant: () => new Map([['t', sessions.size]]),
      find: ({ session }: SessionJob) => sessions.get(session),
      serve(found: SessionJob) {
        sessions.set(found.session, found);
        if (sessions.size > served) stopping.abort();
        return Promise.resolve();
      },
    },
    settling: { settled: true },
    requests: { cordoned: false },
    wakeUps: new Notifier(),
    stopping,
  };
  await fetchSessions(worker as unknown as OpenWorker, async () => {});
  return {
    served: [...sessions.keys()],
    calls: [jobs.fetch.mock.calls.length, jobs.listOwn.mock.calls.length],
    limits: jobs.fetch.mock.calls.map(([limits]) => limits),
  };
}

describe('the fetch of sessions', () => {
  test('serves each job once if their fetch got no reply', async () => {
    const locked = [job('served'), job('orphan'), job('second')];
    expect(await fetchAll([new Error('Command timed out'), [job('next')]], locked, 3)).toMatchObject({
      served: ['served', 'orphan', 'second', 'next'],
      calls: [2, 1],
    });
  });

  test('repeats a failed fetch that locked nothing', async () => {
    expect(await fetchAll([new Error('Connection is closed.'), [job('next')]], [job('served')], 1)).toMatchObject({
      served: ['served', 'next'],
      calls: [2, 1],
    });
  });

  test('asks the gate before each one', async () => {
    const admits = vi.fn(() => 1).mockReturnValueOnce(0);
    expect((await fetchAll([[job('a')], [job('b')]], [], 2, admits)).calls).toEqual([2, 0]);
    expect(admits).toHaveBeenCalledTimes(3);
  });

  test('does not read the locks while fetches get their replies', async () => {
    expect((await fetchAll([[job('a')], [job('b')]], [], 2)).calls).toEqual([2, 0]);
  });

  const all = Array.from({ length: 9 }, (_, n) => [job(`s${n}`)]);

  test('passes over a tenant with an eighth of the places for the last eighth', async () => {
    const { limits } = await fetchAll([...all], [], 9);
    expect(limits.map((one) => one?.passedOver)).toEqual([...Array(8).fill([]), ['t']]);
    const [none] = (await fetchAll([[job('a')]], [], 1, undefined, 0)).limits;
    expect(none?.passedOver).toEqual(['t']);
  });

  test('takes as many as gate, slots and last eighth let it', async () => {
    const mostOf = async (...args: [() => number, number?]) =>
      (await fetchAll([...all], [], 9, ...args)).limits.map((one) => one?.most);
    expect(await mostOf(() => 100)).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 1]);
    expect(await mostOf(() => 4)).toEqual([4, 4, 4, 4, 4, 3, 2, 1, 1]);
    expect((await mostOf(() => 100, 2))[0]).toBe(2);
  });
});
