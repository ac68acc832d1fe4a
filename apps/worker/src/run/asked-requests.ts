import { isSignedClose, signedReason } from '@shellfleet/sealing';
import type { SessionContext } from './session-context.ts';

// Marks in the mailbox that a caller has cancelled the running entry or closed the session. Where keys are configured,
// the host obeys a mark only if a known producer signed it, and deletes any other.

/** Returns the signed reason of a cancellation. Undefined when no producer signed it; the mark is deleted then. */
export async function askedToCancel(
  entryId: string,
  reason: string,
  context: SessionContext,
): Promise<string | undefined> {
  const { mailbox, owner, sealer, signal } = context;
  // Ends when the mark has not changed since it was read.
  while (sealer.verifies && !signal.aborted) {
    const signed = await mailbox.readCancelRequest(entryId);
    const asked = signed === '' ? undefined : signedReason(sealer, owner.keys, entryId, { reason, signed });
    if (asked !== undefined) return asked;
    // A close cancels what runs.
    if (await isClosing(context)) return reason;
    // The mark does not belong to a close, so this call reports it as unsigned.
    if (signed === '') signedReason(sealer, owner.keys, entryId, { reason, signed });
    const refused = await mailbox.refuseRequest({ entryId, signed });
    if (refused.type !== 'changed') return undefined;
  }
  return reason;
}

/**
 * Returns true if a producer has closed the session. A mark of a close that no known producer signed is deleted, which
 * reopens the generation.
 */
export async function askedToClose(context: SessionContext): Promise<boolean> {
  const { mailbox, owner, generation, sealer, signal } = context;
  // Ends when the mark has not changed since it was read.
  while (sealer.verifies && !signal.aborted) {
    const { isClosing, signed } = await mailbox.readCloseRequest();
    if (!isClosing) return false;
    if (isSignedClose(sealer, owner.keys, generation, signed)) return true;
    const refused = await mailbox.refuseRequest({ signed });
    if (refused.type !== 'changed') return false;
  }
  return true;
}

async function isClosing({ mailbox, owner, generation, sealer }: SessionContext): Promise<boolean> {
  const { isClosing, signed } = await mailbox.readCloseRequest();
  return isClosing && signed !== '' && isSignedClose(sealer, owner.keys, generation, signed);
}
