import type { SessionJobs } from '@shellfleet/placement';
import type { Logger } from 'pino';
import type { Settling } from '../lease/settling.ts';

/** Hands out sessions again whose host has lost its lease, once per interval while the fleet is settled, until closed. */
export function requeueRegularly(
  jobs: Pick<SessionJobs, 'requeueStalled'>,
  settling: Pick<Settling, 'settled'>,
  intervalMs: number,
  logger: Logger,
): { close(): void } {
  let underWay = false;
  const requeue = async () => {
    if (underWay || !settling.settled) return;
    underWay = true;
    await jobs.requeueStalled().catch((err: unknown) => logger.debug({ err }, 'queue.unavailable'));
    underWay = false;
  };
  const timer = setInterval(() => void requeue(), intervalMs);
  return { close: () => clearInterval(timer) };
}
