import { type Sealer, sealPlace } from '@shellfleet/mailbox';
import type { ApprovalRequestedData, SessionKeys, StoredRequest, WireResult } from '@shellfleet/protocol';

/** Why an entry waits for a person or was denied may quote its script, so it is sealed. */
type Opener = Pick<Sealer, 'open'>;

const UNKNOWN = 'the reason is sealed with a key that this process does not have';

/** A Result with the reason of its denial, or why there was no second attempt. */
export function openResult(sealer: Opener, keys: SessionKeys, entryId: string, wire: WireResult): WireResult {
  const { sealedReason, ...result } = wire;
  if (sealedReason === undefined) return wire;
  const reason = open(sealer, keys, entryId, sealedReason);
  return result.outcome === 'denial' ? { ...result, stderr: `Denied: ${reason}\n` } : { ...result, refused: reason };
}

export function openRequest(
  sealer: Opener,
  keys: SessionKeys,
  entryId: string,
  { id, sealedReason, expiresAt }: StoredRequest,
): ApprovalRequestedData {
  return { id, reason: open(sealer, keys, entryId, sealedReason), expiresAt };
}

function open(sealer: Opener, keys: SessionKeys, entryId: string, sealed: string): string {
  try {
    return sealer.open(sealed, sealPlace('reason', keys, entryId));
  } catch {
    return UNKNOWN;
  }
}
