import type { AuditEvent } from '@shellfleet/protocol';
import type { Audit } from '../audit/audit.ts';
import { CountedEvents } from '../audit/counted-events.ts';
import type { RefusedEgress } from '../egress/session-egress.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';

/** Records requests that the session's proxy refuses. Many equal ones become a few records a minute, with numbers. */
export function auditEgress(
  audit: Audit,
  { tenant, session, generation }: { tenant: string; session: string; generation: string },
  redaction: Pick<SessionRedaction, 'text'>,
): (refused: RefusedEgress) => void {
  const note = (event: Omit<Extract<AuditEvent, { type: 'egress-refused' }>, 'type' | 'session' | 'generation'>) =>
    audit.note(tenant, () => ({ type: 'egress-refused', session, generation, ...event }));
  const counted = new CountedEvents<RefusedEgress>({
    // A name may carry a secret out.
    write: ({ name, port, refusal }, count) => note({ host: redaction.text(name), port, reason: refusal, count }),
    writeOthers: (count) => note({ reason: 'further destinations within the same minute', count }),
  });
  return (refused) => counted.add(JSON.stringify([refused.name, refused.port, refused.refusal]), refused);
}
