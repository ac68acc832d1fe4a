import { readFile } from 'node:fs/promises';
import type { ApprovalPolicy, PrefixRule, SandboxOptions } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { asksAfterDenial } from './decision-table.ts';
import { evaluate } from './evaluate.ts';

const rule = (decision: PrefixRule['decision']): PrefixRule => ({ pattern: ['build'], decision });
const inside: SandboxOptions = { mode: 'workspace-write' };
const outside: SandboxOptions = { mode: 'external' };

/** Examples of the rows in docs/rules.md. */
const rows = {
  'a rule forbids it': { script: 'build', execPolicy: [rule('forbid'), rule('allow')] },
  'a rule asks about it': { script: 'build', execPolicy: [rule('prompt'), rule('allow')] },
  'a rule allows it': { script: 'build', execPolicy: [rule('allow')] },
  'known to be safe': { script: 'ls -l' },
  'neither safe nor dangerous': { script: 'build' },
  dangerous: { script: 'rm -rf x' },
  'more than plain commands': { script: 'ls > x' },
  'asks to leave the sandbox': { script: 'ls', escalate: true },
};
const columns: Record<string, ApprovalPolicy | undefined> = {
  never: 'never',
  'on-failure': 'on-failure',
  'on-request': 'on-request',
  'unless-trusted': 'unless-trusted',
  'reject nothing': { reject: {} },
  'reject sandboxApproval': { reject: { sandboxApproval: true } },
  'reject rules': { reject: { rules: true } },
  omitted: undefined,
};

const [s, a, f] = ['skip', 'needs-approval', 'forbidden'] as const;
type Requirement = typeof s | typeof a | typeof f;

// The rulings in each list are in the order of the columns above.
const expected: Record<keyof typeof rows, Requirement[]> = {
  'a rule forbids it': [f, f, f, f, f, f, f, f],
  'a rule asks about it': [f, a, a, a, a, a, f, a],
  'a rule allows it': [s, s, s, s, s, s, s, s],
  'known to be safe': [s, s, s, s, s, s, s, s],
  'neither safe nor dangerous': [s, s, s, a, s, s, s, s],
  dangerous: [f, a, a, a, a, f, a, s],
  'more than plain commands': [s, s, s, a, s, s, s, s],
  'asks to leave the sandbox': [f, a, a, a, a, f, a, f],
};

describe('the decision table', () => {
  // S3-24, S3-26
  test.each(Object.entries(rows))('has in a sandbox the row "%s"', (row, { script, ...asked }) => {
    const found = Object.values(columns).map(
      (approval) => evaluate(script, { ...asked, sandbox: inside, ...(approval && { approval }) }).requirement,
    );
    expect(found).toEqual(expected[row as keyof typeof rows]);
  });

  // S3-24
  test('is shown in docs/rules.md', async () => {
    const page = await readFile(new URL('../../../../docs/rules.md', import.meta.url), 'utf8');
    const words = { skip: 'run', 'needs-approval': 'ask', forbidden: 'forbid' };
    const shown = Object.entries(expected).map(
      ([row, found]) => `| ${[row, ...found.map((one) => words[one])].join(' | ')} |`,
    );
    expect(page).toContain(shown.join('\n'));
  });

  // S3-24
  test('has the same rows without a sandbox, where no command can ask to leave one', () => {
    for (const [row, { script, ...asked }] of Object.entries(rows)) {
      const found = Object.values(columns).map(
        (approval) => evaluate(script, { ...asked, sandbox: outside, ...(approval && { approval }) }).requirement,
      );
      const same =
        row === 'asks to leave the sandbox' ? Object.values(columns).map(() => s) : expected[row as keyof typeof rows];
      expect([row, found]).toEqual([row, same]);
    }
  });

  // S3-07
  test("lets a command leave its sandbox on request, or if the operator's rules allow it", () => {
    const execPolicy = [rule('allow')];
    expect(evaluate('build; build x', { execPolicy })).toMatchObject({ requirement: s, bypassSandbox: true });
    expect(evaluate('build; build x', { execPolicy, escalate: true })).toMatchObject({
      requirement: s,
      bypassSandbox: true,
    });
    expect(evaluate('build; ls', { execPolicy })).toMatchObject({ requirement: s, bypassSandbox: false });
    expect(evaluate('build > x', { execPolicy })).toMatchObject({ requirement: s, bypassSandbox: false });
    expect(evaluate("build <<'E'\nx\nE\n", { execPolicy })).toMatchObject({ requirement: s, bypassSandbox: false });
    const required: SandboxOptions = { selection: 'require' };
    expect(evaluate('build', { execPolicy, sandbox: required })).toMatchObject({
      requirement: s,
      bypassSandbox: false,
    });
    expect(evaluate('build', { execPolicy, sandbox: required, escalate: true, approval: 'on-request' })).toMatchObject({
      requirement: f,
      reason: 'It asks to leave the sandbox, which the session requires.',
    });
  });

  // S3-11
  test.each<[ApprovalPolicy | undefined, boolean]>([
    ['never', false],
    ['on-failure', true],
    ['on-request', false],
    ['unless-trusted', true],
    [{ reject: {} }, true],
    [{ reject: { rules: true } }, true],
    [{ reject: { sandboxApproval: true } }, false],
    [undefined, false],
  ])('decides under %j whether to ask about a second attempt after a denial by the sandbox', (approval, asks) => {
    expect(asksAfterDenial(approval)).toBe(asks);
  });
});
