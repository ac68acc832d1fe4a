import { sealPlace } from '@shellfleet/mailbox';
import type { SessionContext } from './session-context.ts';

/** Why an entry waits for a person or is denied: redacted, and sealed because it may quote the script. */
export function sealReason(
  entryId: string,
  reason: string,
  { sealer, owner, redaction }: Pick<SessionContext, 'sealer' | 'owner' | 'redaction'>,
): string {
  return sealer.seal(redaction.value(reason), sealPlace('reason', owner.keys, entryId));
}
