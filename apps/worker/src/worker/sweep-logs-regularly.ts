import type { Logger } from 'pino';
import type { HostLog } from '../host-log/host-log.ts';

const INTERVAL_MS = 60_000;

/** Removes expired logs of commands now, and every minute until closed. */
export function sweepLogsRegularly(hostLog: HostLog, logger: Logger): { close(): void } {
  const sweep = () => void hostLog.sweep().catch((err: unknown) => logger.warn({ err }, 'host-log.sweep-failed'));
  sweep();
  const timer = setInterval(sweep, INTERVAL_MS);
  return { close: () => clearInterval(timer) };
}
