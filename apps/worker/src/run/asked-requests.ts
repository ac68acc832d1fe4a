import { isSignedClose, signedReason } from '@shellfleet/sealing';
import type { SessionContext } from './session-context.ts';

// The marks in the mailbox by which a caller has cancelled the running entry or closed the session. Where keys are
// configured, the host acts on a mark only if a known producer signed it, and takes back any other: whoever writes to
// Redis stops nothing by that.

/** The reason of a cancellation, as its producer signed it. Undefined: no producer has, and the mark is gone. */
export async function askedToCancel(
  entryId: string,
  reason: string,
  context: SessionContext,
): Promise<string | undefined> {
  const { mailbox, owner, sealer, signal } = context;
  // Ends when the mark is what it was when it was read.
  while (sealer.verifies && !signal.aborted) {
    const signed = await mailbox.readCancelRequest(entryId);
    const asked = signed === '' ? undefined : signedReason(sealer, owner.keys, entryId, { reason, signed });
    if (asked !== undefined) return asked;
    // A close cancels what runs.
    if (await isClosing(context)) return reason;
    // Only now is it known that it is not part of a close: this reports it.
    if (signed === '') signedReason(sealer, owner.keys, entryId, { reason, signed });
    const refused = await mailbox.refuseRequest({ entryId, signed });
    if (refused.type !== 'changed') return undefined;
  }
  return reason;
}

/** Whether a producer has closed the session, as the mailbox says. Otherwise the generation is open again. */
export async function askedToClose(context: SessionContext): Promise<boolean> {
  const { mailbox, owner, generation, sealer, signal } = context;
  // Ends when the mark is what it was when it was read.
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
