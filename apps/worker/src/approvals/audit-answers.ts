import type { AuditEvent } from '@shellfleet/protocol';
import type { Audit } from '../audit/audit.ts';
import type { AnswerCheck } from './apply-answers.ts';

/**
 * Refuses expired signatures. Records each answer in the audit before it takes effect. If that fails, refuses the
 * answer.
 */
export function auditAnswers(audit: Pick<Audit, 'record'>): AnswerCheck {
  return async (answer, { keys, signature }) => {
    const { id: question, type: decision, answeredBy } = answer;
    const expired = signature !== undefined && signature.expiresAt <= Date.now();
    const event: AuditEvent = expired
      ? {
          type: 'unauthorized',
          kind: 'approval-answer',
          question,
          problem: `the signature by ${signature.signer} has expired`,
        }
      : {
          ...{ type: 'answer', question, decision, answeredBy },
          ...(answer.type === 'approve' ? { scope: answer.scope } : {}),
          ...(answer.type === 'deny' && answer.reason !== undefined ? { reason: answer.reason } : {}),
          ...(signature === undefined ? {} : { approver: signature.signer }),
        };
    try {
      await audit.record(keys.tenant, event);
    } catch {
      return 'it cannot be written into the audit';
    }
    return expired ? 'its signature has expired' : undefined;
  };
}
