import type { ApprovalPolicy, AskByDefault } from '@shellfleet/protocol';
import { defaultRequirement } from './default-requirement.ts';

/** What a command, or a part of a script, is to the rules. `escalation`: it asks to leave its sandbox. */
export type Row = 'forbid' | 'prompt' | 'allow' | 'safe' | 'unknown' | 'dangerous' | 'escalation';
export type Answer = 'skip' | 'ask' | 'forbid';
type Column = Exclude<ApprovalPolicy, object> | 'reject' | 'omitted';

/** docs/rules.md has it with words. Where `reject` asks, the kinds that it names are forbidden. */
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

/** What decides about a row beside the rules. */
export interface AskedFor {
  approval: ApprovalPolicy | undefined;
  /** Whether it would run in a sandbox. */
  sandboxed: boolean;
  /** Absent: 'unreadable'. */
  askByDefault?: AskByDefault | undefined;
}

/** The answer about a row where no rule may decide. A dangerous command is never answered more mildly for it. */
export function answerByDefault(row: Row, { approval, sandboxed, askByDefault }: AskedFor): Answer {
  const answer = answerFor(row, approval);
  if (askByDefault !== 'sandboxed' || (row !== 'safe' && row !== 'unknown' && row !== 'dangerous')) return answer;
  const byDefault = ANSWERS[defaultRequirement(approval, sandboxed).requirement];
  return row === 'dangerous' && byDefault === 'skip' ? answer : byDefault;
}

export const ANSWERS = { skip: 'skip', 'needs-approval': 'ask', forbidden: 'forbid' } as const;

/** Whether a command that its sandbox has denied something may ask for a second attempt outside it. */
export function asksAfterDenial(approval: ApprovalPolicy | undefined): boolean {
  if (typeof approval === 'object') return !approval.reject.sandboxApproval;
  return approval === 'on-failure' || approval === 'unless-trusted';
}
