import { readStoredEvent } from '@shellfleet/mailbox';
import {
  type ApprovalRequestedData,
  LIMITS,
  type SessionKeys,
  ShellfleetError,
  type StoredRequest,
  toCommandId,
  toIssueText,
  tryJson,
  type WireError,
  type WireResult,
  wireErrorSchema,
  wireResultSchema,
  withStoredAt,
} from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';

/** Parses a Result from a host or a mailbox script. Throws INTERNAL when it is not valid. */
export function parseWireResult(json: string, commandId: string): WireResult {
  const bytes = Buffer.byteLength(json);
  // No host writes a larger Result, and each reader that waits for it would have to parse it.
  if (bytes > LIMITS.resultBytes) throw notValid(commandId, `it has ${bytes} bytes, and ${LIMITS.resultBytes} at most`);
  const parsed = wireResultSchema.safeParse(tryJson(json), { error: toIssueText });
  if (parsed.success) return parsed.data;
  throw notValid(commandId, parsed.error.issues[0]?.message ?? 'it is not a result');
}

/** Reads the terminal event `event` of an entry. Throws RESULT_EXPIRED when it is gone. */
export async function readResult(redis: Redis, keys: SessionKeys, entryId: string, event: string): Promise<WireResult> {
  const commandId = toCommandId(keys.session, entryId);
  const entry = await readStoredEvent(redis, keys, event);
  if (entry?.type !== 'command.completed' || entry.entryId !== entryId) throw resultExpired(commandId);
  return withStoredAt(parseWireResult(entry.data.toString('utf8'), commandId), event);
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

/**
 * The part of a Sealer that opens sealed reasons. The reason why an entry waits, was denied or found no shell may quote
 * a script.
 */
type Opener = Pick<Sealer, 'open'>;

const UNKNOWN = 'the reason is sealed with a key that this process does not have';

/**
 * Opens the sealed text of a Result: the reason of a denial, the reason against a second attempt, or the message of an
 * error.
 */
export function openResult(sealer: Opener, keys: SessionKeys, entryId: string, wire: WireResult): WireResult {
  const { sealedReason, ...result } = wire;
  if (sealedReason === undefined) return wire;
  if (result.outcome === 'error') return { ...result, error: openError(sealer, keys, entryId, result, sealedReason) };
  const reason = open(sealer, keys, entryId, sealedReason) ?? UNKNOWN;
  return result.outcome === 'denial' ? { ...result, stderr: `Denied: ${reason}\n` } : { ...result, refused: reason };
}

export function openRequest(
  sealer: Opener,
  keys: SessionKeys,
  entryId: string,
  { id, sealedReason, expiresAt }: StoredRequest,
): ApprovalRequestedData {
  return { id, reason: open(sealer, keys, entryId, sealedReason) ?? UNKNOWN, expiresAt };
}

/** Opens the message of an error. Without the key, returns the error with the message that was stored unsealed. */
function openError(
  sealer: Opener,
  keys: SessionKeys,
  entryId: string,
  { error }: Extract<WireResult, { outcome: 'error' }>,
  sealed: string,
): WireError {
  const opened = open(sealer, keys, entryId, sealed, 'error');
  return opened === undefined ? error : wireErrorSchema.parse(JSON.parse(opened));
}

function open(
  sealer: Opener,
  keys: SessionKeys,
  entryId: string,
  sealed: string,
  kind: 'reason' | 'error' = 'reason',
): string | undefined {
  try {
    return sealer.open(sealed, sealPlace(kind, keys, entryId));
  } catch {
    return undefined;
  }
}
