import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';

// LOG-1. A line has each name once: readers that are strict refuse one that has a name twice, and the others keep one of the values. A logger of
//        a session has names of its own (its bindings), and so does pino; what a call gives besides goes round them.
// LOG-2. A log that takes nothing, as on a full disk, stops no session: lines wait in bounded memory, the newest are dropped then, and those
//        that wait are written when there is room.
// LOG-3. While Redis is away, every call to it fails in the same way, many times a second: such an error has its message in
//        place of a stack.

const MOST_WAITING_BYTES = 1024 * 1024;
const REDIS_AWAY = /^(?:Stream isn't writeable|Connection is closed|Command timed out|connect ECONNREFUSED)/;
/** Names that pino itself writes. */
const OF_PINO = ['level', 'time', 'pid', 'hostname', 'msg'];

export function createLogger(level: string, destination: DestinationStream = openLog(process.stdout.fd)): Logger {
  const options: LoggerOptions = {
    level,
    formatters: { level: (label) => ({ level: label }) },
    hooks: {
      logMethod([fields, ...rest]: unknown[], log) {
        Reflect.apply(log, this, [withoutTaken(shortened(fields), this), ...rest]);
      },
    },
  };
  return pino(options, destination);
}

/** LOG-2. `file`: a descriptor, or a path. */
export function openLog(file: number | string): DestinationStream {
  return pino.destination({ dest: file, sync: true, maxLength: MOST_WAITING_BYTES }).on('error', () => {});
}

/** LOG-1. What the logger says already is left out; another value of that name gets a name of its own. */
function withoutTaken(fields: unknown, logger: Logger): unknown {
  if (typeof fields !== 'object' || fields === null || fields instanceof Error) return fields;
  const bound = logger.bindings();
  const isTaken = (name: string) => Object.hasOwn(bound, name) || OF_PINO.includes(name);
  if (!Object.keys(fields).some(isTaken)) return fields;
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      if (!isTaken(name)) return [[name, value]];
      return bound[name] === value ? [] : [[`other.${name}`, value]];
    }),
  );
}

/** LOG-3. */
function shortened(fields: unknown): unknown {
  const { err } = (fields ?? {}) as { err?: unknown };
  if (!(err instanceof Error) || !isRedisAway(err)) return fields;
  const { name, message, code } = err as NodeJS.ErrnoException;
  const short = Object.assign(new Error(message), { stack: `${name}: ${message}`, ...(code && { code }) });
  return { ...(fields as object), err: short };
}

/** As ioredis words it. */
function isRedisAway({ message, cause }: Error): boolean {
  return REDIS_AWAY.test(message) || (cause instanceof Error && isRedisAway(cause));
}
