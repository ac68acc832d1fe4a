import { createVerifier, type SealPlace, type Verifier } from '@shellfleet/mailbox';
import type { Logger } from 'pino';
import { ANYONE_SUBMITS, type Signatures } from '../admission/create-admission.ts';
import { requireSignatures } from '../admission/require-signatures.ts';
import type { Audit } from '../audit/audit.ts';
import { digestOfKeys, type KeysSection } from '../config/keys-section.ts';

/** Why something is refused is in the audit and in the log, and nowhere else. Without keys nothing has to be signed. */
export function askForSignatures(
  keys: KeysSection | undefined,
  audit: Pick<Audit, 'record'>,
  logger: Logger,
): { verifier: Verifier | undefined; signatures: Signatures } {
  if (keys === undefined) return { verifier: undefined, signatures: ANYONE_SUBMITS };
  const report = (about: Pick<SealPlace, 'tenant' | 'session' | 'entry' | 'kind'>, problem: string) => {
    const { tenant, session, entry, kind } = about;
    logger.warn({ tenant, session, entry, kind, problem }, 'signature.refused');
    // Nothing takes effect, so nothing waits for it.
    void audit.record(tenant, { type: 'unauthorized', kind, session, entry, problem }).catch(() => {});
  };
  return {
    verifier: createVerifier(keys, report),
    signatures: requireSignatures(digestOfKeys(keys), ({ tenant, session, entryId, payload, signature }) =>
      report(
        { tenant, session, entry: entryId, kind: payload.type === 'file' ? 'file' : 'payload' },
        signature === undefined ? 'it is not signed' : `the signature by ${signature.signer} has expired`,
      ),
    ),
  };
}
