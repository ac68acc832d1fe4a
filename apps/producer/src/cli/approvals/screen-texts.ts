import { type Approval, type ApprovalScope, describePattern } from '@shellfleet/client';
import { toCanonicalJson, toPrintable } from '@shellfleet/protocol';

export function describeCount(count: number, tenant: string): string {
  const of = `of the tenant ${tenant}`;
  if (count === 0) return `No question ${of} waits. New ones appear here.`;
  return `${count === 1 ? '1 question' : `${count} questions`} ${of} ${count === 1 ? 'waits' : 'wait'}:`;
}

export function describeScope(scope: ApprovalScope, { count, amendment }: Approval): string {
  const sessions = count === 1 ? '1 session' : `${count} sessions`;
  if (scope === 'command') return `Let it run in the ${sessions} where it waits?`;
  if (scope === 'session') return `Let it run in the ${sessions} where it waits, and whenever they ask the same again?`;
  const pattern = amendment === undefined ? '' : describePattern(amendment);
  return `Allow from now on, in every session of the tenant, until it is revoked: ${pattern} ?`;
}

export function describeEnd({ state, answeredBy, scope, answer }: Approval): string {
  const by = answeredBy === undefined ? '' : ` by ${toPrintable(answeredBy)}`;
  const reach = scope === undefined || scope === 'command' ? '' : ` for ${scope}`;
  const why = answer === undefined || answer === '' ? '' : ` (${toPrintable(answer)})`;
  return `${state === 'withdrawn' || state === 'expired' ? 'has ended: ' : 'was '}${state}${reach}${by}${why}`;
}

export const askersOf = ({ sessionId, count }: Approval) => (count > 1 ? `${sessionId} +${count - 1}` : sessionId);
export const firstLineOf = ({ script }: Approval) => script.split('\n', 1)[0] ?? '';

/** Returns true if two states of a question are equal, apart from the count of askers and the times. */
export function isSame(one: Approval, other: Approval): boolean {
  return textOf(one) === textOf(other);
}

const textOf = (question: Approval) => toCanonicalJson({ ...question, count: 0, askedAt: '', expiresAt: '' });
