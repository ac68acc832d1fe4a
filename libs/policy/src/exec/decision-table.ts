import type { ApprovalPolicy, AskByDefault } from '@shellfleet/protocol';
import { requirementWithoutRule } from './requirement-without-rule.ts';

/** Row of a command or a part of a script. `escalation` is a command that asks to leave its sandbox. */
export type Row = 'forbid' | 'prompt' | 'allow' | 'safe' | 'unknown' | 'dangerous' | 'escalation';
/** Ruling of the rules. In the results of `evaluate` the three are `skip`, `needs-approval` and `forbidden`. */
export type Ruling = 'allow' | 'ask' | 'forbid';
type Column = Exclude<ApprovalPolicy, object> | 'reject' | 'omitted';

/** The table of docs/rules.md. With `reject`, a kind of question that it names is forbidden instead of asked. */
const DECISION_TABLE: Readonly<Record<Row, Readonly<Record<Column, Ruling>>>> = {
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
    never: 'allow',
    'on-failure': 'allow',
    'on-request': 'allow',
    'unless-trusted': 'allow',
    reject: 'allow',
    omitted: 'allow',
  },
  safe: {
    never: 'allow',
    'on-failure': 'allow',
    'on-request': 'allow',
    'unless-trusted': 'allow',
    reject: 'allow',
    omitted: 'allow',
  },
  unknown: {
    never: 'allow',
    'on-failure': 'allow',
    'on-request': 'allow',
    'unless-trusted': 'ask',
    reject: 'allow',
    omitted: 'allow',
  },
  dangerous: {
    never: 'forbid',
    'on-failure': 'ask',
    'on-request': 'ask',
    'unless-trusted': 'ask',
    reject: 'ask',
    omitted: 'allow',
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

export function rulingFor(row: Row, approval: ApprovalPolicy | undefined): Ruling {
  if (typeof approval !== 'object') return DECISION_TABLE[row][approval ?? 'omitted'];
  const ruling = DECISION_TABLE[row].reject;
  const rejected = row === 'prompt' ? approval.reject.rules : approval.reject.sandboxApproval;
  return ruling === 'ask' && rejected ? 'forbid' : ruling;
}

/** Everything except rules on which the ruling about a row depends. */
export interface AskedFor {
  approval: ApprovalPolicy | undefined;
  sandboxed: boolean;
  /** Commands about which a person is asked where no rule decides. Default: `unreadable`. */
  askByDefault?: AskByDefault | undefined;
}

/**
 * Returns the ruling about a row where no rule decides. A dangerous command never gets a milder ruling than other
 * commands.
 */
export function defaultRuling(row: Row, { approval, sandboxed, askByDefault }: AskedFor): Ruling {
  const ruling = rulingFor(row, approval);
  if (askByDefault !== 'sandboxed' || (row !== 'safe' && row !== 'unknown' && row !== 'dangerous')) return ruling;
  const byDefault = RULINGS[requirementWithoutRule(approval, sandboxed).requirement];
  return row === 'dangerous' && byDefault === 'allow' ? ruling : byDefault;
}

export const RULINGS = { skip: 'allow', 'needs-approval': 'ask', forbidden: 'forbid' } as const;
export const REQUIREMENTS = { allow: 'skip', ask: 'needs-approval', forbid: 'forbidden' } as const;
export const STRICTNESS: Record<Ruling, number> = { allow: 0, ask: 1, forbid: 2 };

/** Tells whether a command that its sandbox has denied something may ask for a second attempt outside it. */
export function asksAfterDenial(approval: ApprovalPolicy | undefined): boolean {
  if (typeof approval === 'object') return !approval.reject.sandboxApproval;
  return approval === 'on-failure' || approval === 'unless-trusted';
}
