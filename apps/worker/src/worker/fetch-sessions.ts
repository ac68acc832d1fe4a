import { setTimeout as delay } from 'node:timers/promises';
import type { SessionJob, SessionJobs } from '@shellfleet/admission';
import type { Notifier } from '@shellfleet/concurrency';
import { REDIS_DEADLINE_MS } from '@shellfleet/mailbox';
import type { Logger } from 'pino';
import type { HostedSessions } from './hosted-sessions.ts';

/** How often the queue and the calls are read without a wake-up. */
const POLL_MS = 1_000;

export interface FetchDeps {
  jobs: SessionJobs;
  sessions: HostedSessions;
  slots: number;
  /** Notified when there may be a job, or a free slot, and when the worker stops. */
  wakeUps: Notifier;
  readCalls(): Promise<void>;
  logger: Logger;
  stopping: AbortSignal;
}

/** Takes sessions from the queue while there are free slots. Resolves when the worker stops. */
export async function fetchSessions(deps: FetchDeps): Promise<void> {
  const { sessions, slots, wakeUps, stopping } = deps;
  while (!stopping.aborted) {
    const job = sessions.size < slots ? await fetchJob(deps) : undefined;
    if (job !== undefined) {
      sessions.serve(job);
      continue;
    }
    await wakeUps.wait({ timeoutMs: POLL_MS });
    await deps.readCalls();
  }
}

async function fetchJob({ jobs, logger }: FetchDeps): Promise<SessionJob | undefined> {
  try {
    return await jobs.fetch();
  } catch (err) {
    logger.warn({ err }, 'queue.unavailable');
    await delay(REDIS_DEADLINE_MS / 4);
    return undefined;
  }
}
