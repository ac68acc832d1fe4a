import type { LogField } from '@shellfleet/protocol';
import type { ChildLoggerOptions } from 'pino';

/** Fields of a log line, each of which docs/telemetry.md lists. */
export type LogFields = { readonly [Name in LogField]?: unknown };

/** Name of what happened, such as `session.opened`. */
type LogEvent = `${string}.${string}`;

interface WriteLine {
  (event: LogEvent): void;
  (fields: LogFields, event: LogEvent): void;
}

type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal';

/** The log of a worker, as its parts use it: a line has an event and known fields, and no other text. */
export interface Logger extends Readonly<Record<Level, WriteLine>> {
  isLevelEnabled(level: string): boolean;
  child(fields: LogFields, options?: ChildLoggerOptions): Logger;
}
