import { setTimeout as delay } from 'node:timers/promises';
import type { SessionJob } from '@shellfleet/placement';
import { REDIS_DEADLINE_MS } from '@shellfleet/redis';
import { takenAtOnce, tenantsWithTheirPart } from './last-eighth.ts';
import type { OpenWorker } from './open-worker.ts';

/** Interval at which the queue and the calls are read without a wake-up. */
const POLL_MS = 1_000;

/**
 * Takes sessions from the queue while the fleet is settled, slots are free and the gate is open. Resolves when the
 * worker stops.
 */
export async function fetchSessions(worker: OpenWorker, readCalls: () => Promise<void>): Promise<void> {
  const { host, gate, sessions, settling, requests, wakeUps, stopping } = worker;
  const { logger } = host;
  const { slots } = host.settings;
  let replyLost = false;
  while (!stopping.signal.aborted) {
    const failedBefore: boolean = replyLost;
    const free = Math.max(0, slots - sessions.size);
    const takes = free > 0 && !worker.isDraining() && !requests.cordoned && settling.settled;
    const most = takes ? Math.min(free, gate.admits()) : 0;
    const jobs: SessionJob[] | Error =
      (replyLost && free > 0) || most > 0 ? await fetchJobs(worker, replyLost, most).catch(toError) : [];
    replyLost = jobs instanceof Error;
    if (jobs instanceof Error) {
      // Logged once per outage.
      if (!failedBefore) logger.warn({ err: jobs }, 'queue.unavailable');
      await delay(REDIS_DEADLINE_MS / 4);
    } else if (jobs.length > 0) {
      for (const job of jobs) gate.taken(sessions.serve(job));
    } else {
      const wishEndMs = most > 0 ? host.jobs.nextWishEndMs() : undefined;
      await wakeUps.wait({ timeoutMs: Math.min(POLL_MS, wishEndMs ?? POLL_MS) });
      await readCalls();
    }
  }
}

/**
 * Returns the next jobs, at most `most`. If the last fetch had no reply, returns the jobs that are locked for this host
 * but not served here: the lost reply may have carried them, and Redis does not return them again before their locks
 * expire.
 */
async function fetchJobs(
  { host: { jobs, settings }, gate, sessions }: OpenWorker,
  replyLost: boolean,
  most: number,
): Promise<SessionJob[]> {
  const unserved = replyLost ? (await jobs.listOwn()).filter((job) => sessions.find(job) === undefined) : [];
  if (unserved.length > 0) return unserved;
  const places = Math.min(settings.slots, sessions.size + gate.places());
  const held = sessions.countByTenant();
  const limits = { most: Math.min(most, takenAtOnce(held, places)), passedOver: tenantsWithTheirPart(held, places) };
  return most === 0 ? [] : jobs.fetch(limits);
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
