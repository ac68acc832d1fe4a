import { ATTRIBUTES, type AuditEvent, toCommandId } from '@shellfleet/protocol';
import { createVerifier, type SealPlace, type Verifier } from '@shellfleet/sealing';
import { ANYONE_SUBMITS, type Signatures } from '../admission/create-admission.ts';
import { requireSignatures } from '../admission/require-signatures.ts';
import type { Audit } from '../audit/audit.ts';
import { CountedEvents } from '../audit/counted-events.ts';
import { digestOfKeys, type KeysSection } from '../config/keys-section.ts';
import type { LogFields, Logger } from '../log/logger.ts';

/** Returns what checks signatures. The audit and the log alone have the reason of a refusal. */
export function askForSignatures(
  keys: KeysSection | undefined,
  audit: Pick<Audit, 'record'>,
  logger: Logger,
): { verifier: Verifier | undefined; signatures: Signatures } {
  if (keys === undefined) return { verifier: undefined, signatures: ANYONE_SUBMITS };
  const refusals = countRefusals(audit);
  const report = (about: Pick<SealPlace, 'tenant' | 'session' | 'entry' | 'kind'>, problem: string) => {
    const { tenant, session, entry, kind } = about;
    logger.warn({ ...fieldsOf(about), kind, problem }, 'signature.refused');
    refusals.add([tenant, session, entry, kind, problem].join('\n'), {
      tenant,
      event: { type: 'unauthorized', kind, session, entry, problem },
    });
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

/** Returns the fields of a log that name what was to be signed. A tool call has no session, and a close no entry. */
function fieldsOf({ tenant, session, entry }: Pick<SealPlace, 'tenant' | 'session' | 'entry'>): LogFields {
  return {
    [ATTRIBUTES.tenant]: tenant,
    ...(session !== '' && { [ATTRIBUTES.sessionId]: session }),
    ...(entry !== '' && { [ATTRIBUTES.commandId]: toCommandId(session, entry) }),
  };
}

/** Counts refusals, since a writer of Redis can forge without end. An end with UNAUTHORIZED waits for the record. */
function countRefusals(audit: Pick<Audit, 'record'>) {
  const record = (tenant: string, event: AuditEvent) => void audit.record(tenant, event).catch(() => {});
  const byTenant = new Map<string, CountedEvents<Extract<AuditEvent, { type: 'unauthorized' }>>>();
  return {
    add(
      key: string,
      { tenant, event }: { tenant: string; event: Extract<AuditEvent, { type: 'unauthorized' }> },
    ): void {
      const counted =
        byTenant.get(tenant) ??
        new CountedEvents({
          write: (refused, count) => record(tenant, { ...refused, ...(count === 1 ? {} : { count }) }),
          writeOthers: (count) =>
            record(tenant, {
              type: 'unauthorized',
              kind: 'any',
              problem: 'further ones within the same minute',
              count,
            }),
        });
      byTenant.set(tenant, counted);
      counted.add(key, event);
    },
  };
}
