import type { Adopted, HostMailbox } from '@shellfleet/mailbox';
import type { ResolvedSessionSpec } from '@shellfleet/protocol';
import type { SessionAdmission } from '../admission/admission.ts';
import { createSessionEgress } from '../egress/create-session-egress.ts';
import { createOutside } from '../outside/create-outside.ts';
import { createSessionRedaction, redactLog } from '../redaction/session-redaction.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { SessionContext } from '../run/session-context.ts';
import { auditEgress } from './audit-egress.ts';

/** Creates the context of a session that was just adopted. `signal` aborts when the host loses the session. */
export function createContext(
  { generation }: Adopted,
  spec: ResolvedSessionSpec,
  mailbox: HostMailbox,
  admission: SessionAdmission,
  signal: AbortSignal,
  host: SessionHost,
): SessionContext {
  const { keys } = mailbox.owner;
  const { tenant, session } = keys;
  const { escalation, allow } = host.settings.file;
  const redaction = createSessionRedaction(spec, keys, host.sealer);
  const logger = redactLog(host.logger, redaction);
  if (redaction.warnings.length > 0) logger.warn({ warnings: redaction.warnings }, 'redaction.warnings');
  const onEgressRefused = auditEgress(host.audit, { tenant, session, generation }, redaction);
  return {
    ...host,
    ...{ mailbox, owner: mailbox.owner, generation, spec, redaction, logger, signal },
    takesRealPaths: (operation) => admission.digest !== '' && admission.takesRealPaths(operation),
    stoppedUnstored: new Set(),
    egress: createSessionEgress(spec, allow, { logger, onRefused: onEgressRefused }),
    onEgressRefused,
    outside: createOutside(spec, escalation && { escalation, allow }),
  };
}
