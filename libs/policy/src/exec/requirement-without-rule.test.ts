import type { ApprovalPolicy } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { evaluate } from './evaluate.ts';
import { type RequirementWithoutRule, requirementWithoutRule } from './requirement-without-rule.ts';

const skip: RequirementWithoutRule = { requirement: 'skip' };
const ask: RequirementWithoutRule = { requirement: 'needs-approval' };
const forbidden: RequirementWithoutRule = {
  requirement: 'forbidden',
  reason: 'approval policy rejected sandbox approval prompt',
};
const asksThatToo: ApprovalPolicy = { reject: {} };
const rejects: ApprovalPolicy = { reject: { sandboxApproval: true } };

const rows: [approval: ApprovalPolicy | undefined, where: RequirementWithoutRule, elsewhere: RequirementWithoutRule][] =
  [
    ['never', skip, skip],
    ['on-failure', skip, skip],
    ['on-request', ask, skip],
    ['unless-trusted', ask, ask],
    [asksThatToo, ask, skip],
    [rejects, forbidden, skip],
    [undefined, skip, skip],
  ];

describe('the requirement without a rule', () => {
  // S3-14
  test.each(rows)('depends on the approval policy %j and the sandbox', (approval, where, elsewhere) => {
    expect(requirementWithoutRule(approval, true)).toEqual(where);
    expect(requirementWithoutRule(approval, false)).toEqual(elsewhere);
  });

  // S3-14
  test.each(rows)('applies to a script that no parser can read, under %j', (approval, where, elsewhere) => {
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
});

// S3-14: the rule decides about every command that no rule decides about.
describe("askByDefault: 'sandboxed'", () => {
  const askByDefault = 'sandboxed';

  test.each(rows)(
    'follows the requirement without a rule for every command, under %j',
    (approval, where, elsewhere) => {
      for (const script of ['ls', 'touch x', 'make all; ls', 'ls > x', 'echo "'])
        for (const [modes, { requirement }] of [
          [['read-only', 'workspace-write'], where],
          [['danger-full-access', 'external'], elsewhere],
        ] as const)
          for (const mode of modes) {
            const found = evaluate(script, { askByDefault, sandbox: { mode }, ...(approval && { approval }) });
            expect([script, mode, found.requirement]).toEqual([script, mode, requirement]);
            if (requirement === 'forbidden') expect(found.reason).toBe(forbidden.reason);
          }
    },
  );

  test('gives a reason for each command, and offers a rule if the command starts nothing', () => {
    expect(evaluate('cat x', { askByDefault, approval: 'on-request' })).toEqual({
      requirement: 'needs-approval',
      reason: 'No rule decides about `cat x`, and the session asks about every such command.',
      matchedRules: [],
      classification: 'safe',
      bypassSandbox: false,
      amendment: { pattern: ['cat', 'x'], decision: 'allow' },
    });
    expect(evaluate('make all', { askByDefault, approval: 'on-request' })).not.toHaveProperty('amendment');
  });

  test('changes no decision of a rule', () => {
    for (const [decision, requirement] of [
      ['allow', 'skip'],
      ['prompt', 'needs-approval'],
      ['forbid', 'forbidden'],
    ] as const)
      for (const approval of ['on-request', 'unless-trusted', 'on-failure'] as const) {
        const execPolicy = [{ pattern: ['make'], decision }];
        expect(evaluate('make all', { askByDefault, approval, execPolicy }).requirement).toBe(requirement);
      }
  });

  test("is never milder than 'unreadable' about a dangerous command", () => {
    const found = (approval: ApprovalPolicy, mode: 'read-only' | 'external') =>
      evaluate('rm -rf x', { askByDefault, approval, sandbox: { mode } }).requirement;
    expect(found('never', 'read-only')).toBe('forbidden');
    expect(found('on-failure', 'read-only')).toBe('needs-approval');
    expect(found('on-request', 'external')).toBe('needs-approval');
  });

  test("defaults to 'unreadable'", () => {
    for (const askByDefault of [undefined, 'unreadable'] as const)
      expect(evaluate('touch x', { approval: 'on-request', ...(askByDefault && { askByDefault }) }).requirement).toBe(
        'skip',
      );
  });
});
