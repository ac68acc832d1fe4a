import type { Adopted, HostMailbox } from '@shellfleet/mailbox';
import type { SessionJob } from '@shellfleet/placement';
import type { AuditEvent, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { SessionAdmission } from '../admission/admission.ts';
import type { Audit } from '../audit/audit.ts';
import { CountedEvents } from '../audit/counted-events.ts';
import { createSessionEgress } from '../egress/create-session-egress.ts';
import type { RefusedEgress } from '../egress/session-egress.ts';
import type { Lease } from '../lease/leases.ts';
import { createSessionRedaction, redactLog, type SessionRedaction } from '../redaction/session-redaction.ts';
import { Delegation } from '../run/delegation.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { SessionContext } from '../run/session-context.ts';
import { SessionTimes } from '../run/session-times.ts';
import { SessionTraces } from '../tracing/session-traces.ts';
import { createWider } from '../wider/create-wider.ts';
import type { Hosting } from './hosting.ts';

export interface SessionStart {
  job: SessionJob;
  adopted: Adopted;
  spec: ResolvedSessionSpec;
  mailbox: HostMailbox;
  lease: Lease;
  hosting: Hosting;
}

/** The context of a session before its shell is made. */
export type ShelllessContext = Omit<SessionContext, 'shell'>;

/** Creates the context of an adopted session, without its shell. Its mailbox obeys `admission`. */
export function createSessionContext(
  start: SessionStart,
  admission: SessionAdmission,
  host: SessionHost,
): ShelllessContext {
  const { adopted, spec, mailbox, lease, hosting } = start;
  const { generation } = adopted;
  const { keys } = mailbox.owner;
  const { tenant, session } = keys;
  const { escalation, allow } = host.settings.file;
  const redaction = createSessionRedaction(spec, keys, host.sealer);
  const logger = redactLog(host.logger, redaction);
  if (redaction.warnings.length > 0) logger.warn({ warnings: redaction.warnings }, 'redaction.warnings');
  const times = new SessionTimes(adopted);
  const { host: hostId, fence } = mailbox.owner;
  const toHost = (at: number) => times.toHost(at);
  const traces = host.isTracing ? new SessionTraces({ session, host: hostId, fence, toHost }) : undefined;
  const onEgressRefused = auditEgress(host.audit, { tenant, session, generation }, redaction);
  return {
    ...host,
    ...{ mailbox, owner: mailbox.owner, generation, spec, redaction, logger, signal: hosting.lost },
    mayTakeNext: () => hosting.state === 'serving' && lease.held(),
    delegation: new Delegation({ mailbox, journal: host.journal }),
    takesRealPaths: (operation) => admission.digest !== '' && admission.takesRealPaths(operation),
    stoppedUnstored: new Set(),
    ...{ times, traces },
    egress: createSessionEgress(spec, allow, { logger, metrics: host.metrics, onRefused: onEgressRefused }),
    onEgressRefused,
    wider: createWider(spec, escalation && { escalation, allow }),
  };
}

/**
 * Records requests that the session's proxy refuses. Many equal requests become a few records a minute, with counts.
 */
function auditEgress(
  audit: Audit,
  { tenant, session, generation }: { tenant: string; session: string; generation: string },
  redaction: Pick<SessionRedaction, 'text'>,
): (refused: RefusedEgress) => void {
  const note = (event: Omit<Extract<AuditEvent, { type: 'egress-refused' }>, 'type' | 'session' | 'generation'>) =>
    audit.note(tenant, () => ({ type: 'egress-refused', session, generation, ...event }));
  const counted = new CountedEvents<RefusedEgress>({
    // A command may send a secret as a part of the name, so the name is redacted.
    write: ({ name, port, refusal }, count) => note({ host: redaction.text(name), port, reason: refusal, count }),
    writeOthers: (count) => note({ reason: 'further destinations within the same minute', count }),
  });
  return (refused) => counted.add(JSON.stringify([refused.name, refused.port, refused.refusal]), refused);
}
