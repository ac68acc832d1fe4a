import { type Notifier, type Repetition, repeat } from '@shellfleet/concurrency';
import type { Settling } from '../lease/settling.ts';
import type { SessionHost } from '../run/host-services.ts';

/** Interval at which a worker looks for sessions without a valid lease. */
export const STALLED_INTERVAL_MS = 1_000;

/**
 * Requeues sessions whose host has lost its lease, and tells clients how many sessions wait, every second while the
 * fleet is settled, until closed. Notifies `wakeUps` of sessions that this host may take.
 */
export function requeueRegularly(
  { jobs, logger }: SessionHost,
  settling: Pick<Settling, 'settled'>,
  wakeUps: Pick<Notifier, 'notify'>,
): Repetition {
  const round = async () => {
    if ((await jobs.requeueStalled()) > 0) wakeUps.notify();
    await jobs.publishDemand();
  };
  return repeat(round, {
    everyMs: STALLED_INTERVAL_MS,
    mayBegin: () => settling.settled,
    onError: (err) => logger.debug({ err }, 'queue.unavailable'),
  });
}
