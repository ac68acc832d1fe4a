import { type Repetition, repeat } from '@shellfleet/concurrency';
import type { SessionJobs } from '@shellfleet/placement';
import type { Logger } from 'pino';
import type { Settling } from '../lease/settling.ts';

/** How often a worker looks for sessions whose host has lost its lease. */
export const STALLED_INTERVAL_MS = 1_000;

/** Hands out sessions again whose host has lost its lease, once per interval while the fleet is settled, until closed. */
export function requeueRegularly(
  jobs: Pick<SessionJobs, 'requeueStalled'>,
  settling: Pick<Settling, 'settled'>,
  intervalMs: number,
  logger: Logger,
): Repetition {
  return repeat(() => jobs.requeueStalled(), {
    everyMs: intervalMs,
    mayBegin: () => settling.settled,
    onError: (err) => logger.debug({ err }, 'queue.unavailable'),
  });
}
