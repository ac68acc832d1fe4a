import { ShellfleetError } from '@shellfleet/protocol';

/** Parsers of script replies, which come from outside this process. */

export function asArray(reply: unknown, script: string): unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply, script);
}

export function asString(value: unknown): string {
  return typeof value === 'string' ? value : value === null || value === undefined ? '' : String(value);
}

export function asNumber(value: unknown): number {
  const number = typeof value === 'number' ? value : Number(asString(value));
  return Number.isFinite(number) ? number : 0;
}

export function unexpected(reply: unknown, script: string): ShellfleetError {
  return new ShellfleetError(
    'INTERNAL',
    `The mailbox script ${script} answered ${JSON.stringify(reply)?.slice(0, 200)}, which it never does.`,
  );
}
