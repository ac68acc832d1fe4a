import type { Logger } from '../log/logger.ts';
import type { EgressEvent } from './session-egress.ts';

/** Most lines for one session in one period, so that a program which retries forever does not fill the log. */
const MOST_LINES = 64;
const PERIOD_MS = 60_000;

/** Logs each destination and verdict once a minute. Requests without a line are counted in the next minute's line. */
export function createEgressLog(
  logger: Logger,
  now: () => number = () => performance.now(),
): (event: EgressEvent) => void {
  const written = new Set<string>();
  let since = now();
  let unwritten = 0;
  return ({ name, port, refusal }) => {
    if (now() - since >= PERIOD_MS) {
      written.clear();
      since = now();
    }
    const key = JSON.stringify([name, port, refusal]);
    if (written.has(key) || written.size >= MOST_LINES) {
      unwritten += 1;
      return;
    }
    written.add(key);
    const line = { 'server.address': name, 'server.port': port, ...(unwritten === 0 ? {} : { unwritten }) };
    unwritten = 0;
    if (refusal === undefined) logger.info(line, 'egress.let-through');
    else logger.warn({ ...line, reason: refusal }, 'egress.refused');
  };
}
