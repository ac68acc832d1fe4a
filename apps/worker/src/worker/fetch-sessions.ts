import { setTimeout as delay } from 'node:timers/promises';
import type { Notifier } from '@shellfleet/concurrency';
import type { SessionJob, SessionJobs } from '@shellfleet/placement';
import { REDIS_DEADLINE_MS } from '@shellfleet/redis';
import type { Logger } from 'pino';
import type { Settling } from '../lease/settling.ts';
import type { HostedSessions } from './hosted-sessions.ts';

/** How often the queue and the calls are read without a wake-up. */
const POLL_MS = 1_000;

export interface FetchDeps {
  jobs: SessionJobs;
  sessions: Pick<HostedSessions, 'size' | 'find' | 'serve'>;
  slots: number;
  /** Whether this host takes new sessions at present. */
  mayTake(): boolean;
  /** Until the fleet has settled, nothing is taken. */
  settling: Pick<Settling, 'settled'>;
  /** Notified when there may be a job, or a free slot, and when the worker stops. */
  wakeUps: Notifier;
  readCalls(): Promise<void>;
  logger: Logger;
  stopping: AbortSignal;
}

/** Takes sessions from the queue while there are free slots. Resolves when the worker stops. */
export async function fetchSessions(deps: FetchDeps): Promise<void> {
  const { sessions, slots, wakeUps, stopping, logger } = deps;
  let replyLost = false;
  while (!stopping.aborted) {
    const failedBefore: boolean = replyLost;
    const mayTake = deps.mayTake() && deps.settling.settled;
    const jobs: SessionJob[] | Error =
      (replyLost || mayTake) && sessions.size < slots ? await fetchJobs(deps, replyLost, mayTake).catch(toError) : [];
    replyLost = jobs instanceof Error;
    if (jobs instanceof Error) {
      // Once for each outage.
      if (!failedBefore) logger.warn({ err: jobs }, 'queue.unavailable');
      await delay(REDIS_DEADLINE_MS / 4);
    } else if (jobs.length > 0) {
      for (const job of jobs) sessions.serve(job);
    } else {
      await wakeUps.wait({ timeoutMs: POLL_MS });
      await deps.readCalls();
    }
  }
}

/**
 * The next job, if there is one. After a fetch without a reply: the jobs that are locked for this host and not served here. Redis may have
 * handed one out with the lost reply, and no fetch returns it again before its lock runs out.
 */
async function fetchJobs({ jobs, sessions }: FetchDeps, replyLost: boolean, mayTake: boolean): Promise<SessionJob[]> {
  const unserved = replyLost ? (await jobs.listOwn()).filter((job) => sessions.find(job) === undefined) : [];
  if (unserved.length > 0) return unserved;
  const job = mayTake ? await jobs.fetch() : undefined;
  return job === undefined ? [] : [job];
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
