import {
  type ApprovalRequestedData,
  type SessionKeys,
  type StoredRequest,
  type WireError,
  type WireResult,
  wireErrorSchema,
} from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';

/** Opens sealed reasons: why an entry waits, was denied or found no shell may quote a script. */
type Opener = Pick<Sealer, 'open'>;

const UNKNOWN = 'the reason is sealed with a key that this process does not have';

/** Opens a Result's reason of denial, its reason against a second attempt, or the message of its error. */
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

/** Opens the message of an error. Without the key, the stored message stays. */
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
