import type { ApprovalPolicy } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
import { type DefaultRequirement, defaultRequirement } from './default-requirement.ts';
import { evaluate } from './evaluate.ts';

const skip: DefaultRequirement = { requirement: 'skip' };
const ask: DefaultRequirement = { requirement: 'needs-approval' };
const forbidden: DefaultRequirement = {
  requirement: 'forbidden',
  reason: 'approval policy rejected sandbox approval prompt',
};
const asksThatToo: ApprovalPolicy = { reject: {} };
const rejects: ApprovalPolicy = { reject: { sandboxApproval: true } };

const rows: [approval: ApprovalPolicy | undefined, where: DefaultRequirement, elsewhere: DefaultRequirement][] = [
  ['never', skip, skip],
  ['on-failure', skip, skip],
  ['on-request', ask, skip],
  ['unless-trusted', ask, ask],
  [asksThatToo, ask, skip],
  [rejects, forbidden, skip],
  [undefined, skip, skip],
];

test.each(rows)('S3-14: the default need for approval follows from the policy %j', (approval, where, elsewhere) => {
  expect(defaultRequirement(approval, true)).toEqual(where);
  expect(defaultRequirement(approval, false)).toEqual(elsewhere);
});

test.each(rows)('S3-14: it decides about a script that no parser can read, under %j', (approval, where, elsewhere) => {
  const unreadable = 'echo "';
  for (const mode of ['read-only', 'workspace-write'] as const)
    expect(evaluate(unreadable, { sandbox: { mode }, ...(approval && { approval }) }).requirement).toBe(
      where.requirement,
    );
  for (const mode of ['danger-full-access', 'external'] as const)
    expect(evaluate(unreadable, { sandbox: { mode }, ...(approval && { approval }) }).requirement).toBe(
      elsewhere.requirement,
    );
});
