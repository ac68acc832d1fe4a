import { type Repetition, repeat } from '@shellfleet/concurrency';
import type { HostServices } from '../run/host-services.ts';

const INTERVAL_MS = 60_000;

/** Removes expired command logs now, and every minute until closed. */
export function sweepLogsRegularly({ overflowLogs, logger }: HostServices): Repetition {
  const rounds = repeat(() => overflowLogs.sweep(), {
    everyMs: INTERVAL_MS,
    onError: (err) => logger.warn({ err }, 'overflow-log.sweep-failed'),
  });
  void rounds.now();
  return rounds;
}
