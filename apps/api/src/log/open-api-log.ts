import { type Logger, pino } from 'pino';

/** Bytes of lines that wait while nobody reads stdout. Further lines are dropped. */
const MOST_WAITING_BYTES = 1024 * 1024;

/** Opens the log of this process, on its stdout. A reader of stdout that is slow or gone holds up no request. */
export function openApiLog(level: string): { log: Logger; flush(): void } {
  const stdout = pino.destination({ dest: 1, sync: false, maxLength: MOST_WAITING_BYTES }).on('error', () => {});
  return {
    log: pino({ level, formatters: { level: (label) => ({ level: label }) } }, stdout),
    flush() {
      try {
        stdout.flushSync();
      } catch {
        // Nobody reads the last lines.
      }
    },
  };
}
