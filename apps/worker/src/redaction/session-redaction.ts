import { compileRedaction, type RedactionWarning } from '@shellfleet/policy';
import type { ResolvedSessionSpec, SessionKeys } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import { stdSerializers } from 'pino';
import type { Logger } from '../log/logger.ts';
import type { CreateRedactor } from '../output/redactor.ts';

/** Redacts texts that leave a session's shell: output by `createRedactor`, others by `text` or `value`. */
export interface SessionRedaction {
  createRedactor: CreateRedactor;
  /** Creates a redactor for a text that is cut and then shown in a message. It redacts as `text` does. */
  createMessageRedactor: CreateRedactor;
  text(text: string): string;
  value<T>(value: T): T;
  warnings: readonly RedactionWarning[];
}

export function createSessionRedaction(
  { redaction: rules, secrets, redactFormats }: Pick<ResolvedSessionSpec, 'redaction' | 'secrets' | 'redactFormats'>,
  keys: SessionKeys,
  sealer: Sealer,
): SessionRedaction {
  const hashKey = sealer.deriveKey(['redaction', keys.namespace, keys.tenant]);
  const compile = (tokens: boolean) =>
    compileRedaction({ rules, secrets, hashKey, tokens, now: () => performance.now() });
  const compiled = compile(true);
  // Only output may keep text in secret formats: it belongs to the session. Other people read messages and log lines.
  const ofOutput = redactFormats ? compiled : compile(false);
  const text = (given: string): string => {
    const redacted = compiled.text(given);
    return redacted.blocked === undefined ? redacted.text : `[withheld: detected ${redacted.blocked.type}]`;
  };
  return {
    createRedactor: (options) => ofOutput.redactor(options),
    createMessageRedactor: (options) => compiled.redactor(options),
    text,
    value: <T>(value: T) => mapStrings(value, text) as T,
    warnings: compiled.warnings,
  };
}

/** Returns a logger that redacts every line: errors may contain texts of the shell. */
export function redactLog(logger: Logger, { value }: SessionRedaction): Logger {
  const plain = (entry: unknown) => (entry instanceof Error ? stdSerializers.err(entry) : entry);
  const log = (fields: object) =>
    value(Object.fromEntries(Object.entries(fields).map(([name, entry]) => [name, plain(entry)])));
  return logger.child({}, { formatters: { log } });
}

function mapStrings(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mapStrings(inner, map)]));
}
