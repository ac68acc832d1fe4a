import type { WireResult } from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import type { SessionContext } from './session-context.ts';

type Sealing = Pick<SessionContext, 'sealer' | 'owner'>;

/** Redacts the reason of a question or denial, and seals it because it may quote the script. */
export function sealReason(
  entryId: string,
  reason: string,
  { redaction, ...sealing }: Sealing & Pick<SessionContext, 'redaction'>,
): string {
  return seal('reason', entryId, redaction.value(reason), sealing);
}

/** Codes of errors whose message or context quotes commands or rules of the spec, which is sealed. */
const QUOTING: readonly string[] = ['SESSION_START_FAILED', 'RULES_INVALID'];

const SEALED = 'The message is sealed with a key that this process does not have.';

/** Seals the error of a redacted Result if it quotes the spec. */
export function sealError<R extends WireResult>(entryId: string, result: R, sealing: Sealing): R {
  if (result.outcome !== 'error' || !QUOTING.includes(result.error.code)) return result;
  const sealedReason = seal('error', entryId, JSON.stringify(result.error), sealing);
  return { ...result, error: { ...result.error, message: SEALED, context: {} }, sealedReason };
}

function seal(kind: 'reason' | 'error', entryId: string, text: string, { sealer, owner }: Sealing): string {
  return sealer.seal(text, sealPlace(kind, owner.keys, entryId));
}
