import { Notifier } from '@shellfleet/concurrency';
import type { SessionJob } from '@shellfleet/placement';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { fetchSessions } from './fetch-sessions.ts';
import type { OpenWorker } from './open-worker.ts';

const job = (session: string): SessionJob => ({ tenant: 't', session }) as SessionJob;

/** Fetches until `served` sessions are served; `locked` are the jobs that Redis has locked for this host. */
async function fetchAll(
  fetches: (SessionJob | Error | undefined)[],
  locked: SessionJob[],
  served: number,
  admits = () => true,
  places = 100,
) {
  const stopping = new AbortController();
  const sessions = new Map<string, SessionJob>([['served', job('served')]]);
  const jobs = {
    fetch: vi.fn(async (_passedOver: readonly string[]) => {
      const next = fetches.shift();
      if (next instanceof Error) throw next;
      return next;
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
    passedOver: jobs.fetch.mock.calls.map(([tenants]) => tenants),
  };
}

describe('the fetch of sessions', () => {
  test('serves a job once if its fetch got no reply', async () => {
    const locked = [job('served'), job('orphan')];
    expect(await fetchAll([new Error('Command timed out'), job('next')], locked, 2)).toMatchObject({
      served: ['served', 'orphan', 'next'],
      calls: [2, 1],
    });
  });

  test('repeats a failed fetch that locked nothing', async () => {
    expect(await fetchAll([new Error('Connection is closed.'), job('next')], [job('served')], 1)).toMatchObject({
      served: ['served', 'next'],
      calls: [2, 1],
    });
  });

  test('asks the gate before each one', async () => {
    const admits = vi.fn(() => true).mockReturnValueOnce(false);
    expect((await fetchAll([job('a'), job('b')], [], 2, admits)).calls).toEqual([2, 0]);
    expect(admits).toHaveBeenCalledTimes(3);
  });

  test('does not read the locks while fetches get their replies', async () => {
    expect((await fetchAll([job('a'), job('b')], [], 2)).calls).toEqual([2, 0]);
  });

  test('passes over a tenant with an eighth of the places for the last eighth', async () => {
    const all = Array.from({ length: 9 }, (_, n) => job(`s${n}`));
    const { passedOver } = await fetchAll([...all], [], 9);
    expect(passedOver).toEqual([...Array(8).fill([]), ['t']]);
    expect((await fetchAll([job('a')], [], 1, undefined, 0)).passedOver).toEqual([['t']]);
  });
});
