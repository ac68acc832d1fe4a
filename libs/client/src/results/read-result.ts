import { readStreamEntry } from '@shellfleet/mailbox';
import {
  LIMITS,
  type SessionKeys,
  ShellfleetError,
  toCommandId,
  tryJson,
  type WireResult,
  wireResultSchema,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Parses a Result from a host or a mailbox script. Throws INTERNAL when it is not valid. */
export function parseWireResult(json: string, commandId: string): WireResult {
  const bytes = Buffer.byteLength(json);
  // No host writes a larger one, and each waiting reader would parse it.
  if (bytes > LIMITS.resultBytes) throw notValid(commandId, `it has ${bytes} bytes, and ${LIMITS.resultBytes} at most`);
  const parsed = wireResultSchema.safeParse(tryJson(json));
  if (parsed.success) return parsed.data;
  throw notValid(commandId, parsed.error.issues[0]?.message ?? 'it is not a result');
}

/** Reads the terminal event `event` of an entry. Throws RESULT_EXPIRED when it is gone. */
export async function readResult(redis: Redis, keys: SessionKeys, entryId: string, event: string): Promise<WireResult> {
  const commandId = toCommandId(keys.session, entryId);
  const entry = await readStreamEntry(redis, keys, event);
  if (entry?.type !== 'command.completed' || entry.entryId !== entryId) throw resultExpired(commandId);
  return parseWireResult(entry.data.toString('utf8'), commandId);
}

function notValid(commandId: string, reason: string): ShellfleetError {
  return new ShellfleetError('INTERNAL', `The stored result of ${commandId} is not valid: ${reason}.`, { commandId });
}

export function resultExpired(commandId: string): ShellfleetError {
  return new ShellfleetError(
    'RESULT_EXPIRED',
    `Nothing is kept of command ${commandId}: it never existed, it ended longer ago than the fleet's retention, or it was trimmed to make room for newer output of its session.`,
    { commandId },
  );
}
