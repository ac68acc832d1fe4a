import { LOG_LINE_FIELDS } from '@shellfleet/protocol';
import {
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type Logger,
  type LoggerOptions,
  pino,
} from 'pino';

// LOG-1. A line has each name once: strict readers refuse duplicates, and others keep one of the values. A session's
//     logger has bindings, and so does pino. The fields of a call or of a child must not repeat their names.
// LOG-2. A log that takes nothing, as on a full disk, stops no session: lines wait in bounded memory. When it is full,
//     the newest are dropped. The others are written when there is room.
// LOG-3. While Redis is away, every call to it fails in the same way, many times a second. Such an error has its
//     message instead of a stack.

const LINE_FIELDS: ReadonlySet<string> = new Set(LOG_LINE_FIELDS);
const MOST_WAITING_BYTES = 1024 * 1024;
const REDIS_AWAY = /^(?:Stream isn't writeable|Connection is closed|Command timed out|connect ECONNREFUSED)/;

export function createLogger(level: string, destination: DestinationStream): Logger {
  const options: LoggerOptions = {
    level,
    formatters: { level: (label) => ({ level: label }) },
    hooks: {
      logMethod([fields, ...rest]: unknown[], log) {
        Reflect.apply(log, this, [withoutTaken(shortened(fields), this), ...rest]);
      },
    },
  };
  const logger = pino(options, destination);
  const { child } = logger;
  // Children inherit this method.
  logger.child = function (this: Logger, fields: Bindings, of?: ChildLoggerOptions) {
    return Reflect.apply(child, this, [withoutTaken(fields, this), of]);
  } as typeof child;
  return logger;
}

/** Opens the file of a log (LOG-2): a descriptor or a path. */
export function openLogFile(file: number | string): DestinationStream {
  return pino.destination({ dest: file, sync: true, maxLength: MOST_WAITING_BYTES }).on('error', () => {});
}

/** Omits fields that the logger already has. A field with a different value gets another name (LOG-1). */
function withoutTaken(fields: unknown, logger: Logger): unknown {
  if (typeof fields !== 'object' || fields === null || fields instanceof Error) return fields;
  const bound = logger.bindings();
  const isTaken = (name: string) => Object.hasOwn(bound, name) || LINE_FIELDS.has(name);
  if (!Object.keys(fields).some(isTaken)) return fields;
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      if (!isTaken(name)) return [[name, value]];
      return bound[name] === value ? [] : [[`other.${name}`, value]];
    }),
  );
}

function shortened(fields: unknown): unknown {
  const { err } = (fields ?? {}) as { err?: unknown };
  if (!(err instanceof Error) || !isRedisAway(err)) return fields;
  const { name, message, code } = err as NodeJS.ErrnoException;
  const short = Object.assign(new Error(message), { stack: `${name}: ${message}`, ...(code && { code }) });
  return { ...(fields as object), err: short };
}

/** Tells whether the message is one that ioredis uses while Redis is away. */
function isRedisAway({ message, cause }: Error): boolean {
  return REDIS_AWAY.test(message) || (cause instanceof Error && isRedisAway(cause));
}
