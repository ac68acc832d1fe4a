import { ATTRIBUTES } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import { createLogger, openLogFile } from './create-logger.ts';
import type { Logger } from './logger.ts';
import { RecentLines } from './recent-lines.ts';

/** The log of a worker process. */
export interface WorkerLog {
  readonly logger: Logger;
  /** The last lines, for operators who ask for them. */
  readonly recentLines: RecentLines;
  /** Adds the id of the host to every later line. */
  nameHost(hostId: string): void;
}

/** Opens the log of this process, on its stdout. `copy` gets each line as well. */
export function openLog(level: string, copy: (line: string) => void = () => {}): WorkerLog {
  const stdout = openLogFile(process.stdout.fd);
  const recentLines = new RecentLines(ulid());
  const logger = createLogger(level, {
    write(line) {
      recentLines.push(line);
      copy(line);
      stdout.write(line);
    },
  });
  return { logger, recentLines, nameHost: (hostId) => logger.setBindings({ [ATTRIBUTES.hostId]: hostId }) };
}
