import type { ApprovalPolicy } from '@shellfleet/protocol';

/** What a command, or a part of a script, is to the rules. `escalation`: it asks to leave its sandbox. */
export type Row = 'forbid' | 'prompt' | 'allow' | 'safe' | 'unknown' | 'dangerous' | 'escalation';
export type Answer = 'skip' | 'ask' | 'forbid';
type Column = Exclude<ApprovalPolicy, object> | 'reject' | 'omitted';

/** docs/policy.md has it with words. Where `reject` asks, the kinds that it names are forbidden. */
const DECISION_TABLE: Readonly<Record<Row, Readonly<Record<Column, Answer>>>> = {
  forbid: {
    never: 'forbid',
    'on-failure': 'forbid',
    'on-request': 'forbid',
    'unless-trusted': 'forbid',
    reject: 'forbid',
    omitted: 'forbid',
  },
  prompt: {
    never: 'forbid',
    'on-failure': 'ask',
    'on-request': 'ask',
    'unless-trusted': 'ask',
    reject: 'ask',
    omitted: 'ask',
  },
  allow: {
    never: 'skip',
    'on-failure': 'skip',
    'on-request': 'skip',
    'unless-trusted': 'skip',
    reject: 'skip',
    omitted: 'skip',
  },
  safe: {
    never: 'skip',
    'on-failure': 'skip',
    'on-request': 'skip',
    'unless-trusted': 'skip',
    reject: 'skip',
    omitted: 'skip',
  },
  unknown: {
    never: 'skip',
    'on-failure': 'skip',
    'on-request': 'skip',
    'unless-trusted': 'ask',
    reject: 'skip',
    omitted: 'skip',
  },
  dangerous: {
    never: 'forbid',
    'on-failure': 'ask',
    'on-request': 'ask',
    'unless-trusted': 'ask',
    reject: 'ask',
    omitted: 'skip',
  },
  escalation: {
    never: 'forbid',
    'on-failure': 'ask',
    'on-request': 'ask',
    'unless-trusted': 'ask',
    reject: 'ask',
    omitted: 'forbid',
  },
};

export function answerFor(row: Row, approval: ApprovalPolicy | undefined): Answer {
  if (typeof approval !== 'object') return DECISION_TABLE[row][approval ?? 'omitted'];
  const answer = DECISION_TABLE[row].reject;
  const rejected = row === 'prompt' ? approval.reject.rules : approval.reject.sandboxApproval;
  return answer === 'ask' && rejected ? 'forbid' : answer;
}

/** Whether a command that its sandbox has denied something may ask for a second attempt outside it. */
export function asksAfterDenial(approval: ApprovalPolicy | undefined): boolean {
  if (typeof approval === 'object') return !approval.reject.sandboxApproval;
  return approval === 'on-failure' || approval === 'unless-trusted';
}
