import type { PrefixRule } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { evaluate } from './evaluate.ts';

const gitStatus: PrefixRule = { pattern: ['git', 'status'], decision: 'allow' };

describe('evaluate', () => {
  test('allows what a rule allows, and returns the rule', () => {
    expect(evaluate('git status -s', { execPolicy: [gitStatus], approval: 'unless-trusted' })).toEqual({
      requirement: 'skip',
      matchedRules: [gitStatus],
      classification: 'unknown',
      bypassSandbox: true,
    });
  });

  test('asks about a command that no rule allows, and offers a rule for its words', () => {
    expect(evaluate('git status; mkdir build', { execPolicy: [gitStatus], approval: 'unless-trusted' })).toEqual({
      requirement: 'needs-approval',
      reason: '`mkdir build` is not known to be safe, and no rule allows it.',
      matchedRules: [gitStatus],
      classification: 'unknown',
      bypassSandbox: false,
      amendment: { pattern: ['mkdir', 'build'], decision: 'allow' },
    });
  });

  test.each([
    'git status > x',
    'git status & rm x',
    'git status $(rm x)',
    'git status "$(rm x)"',
    'git status `rm x`',
    'git status <(rm x)',
    'A=1 git status',
    'PATH=/evil git status',
    '(git status)',
    '{ git status; }',
    'if git status; then git status; fi',
    'git() { rm x; }; git status',
    'time git status',
    'git status\u00a0&& rm x',
    '$x status',
    'g{it,it} status',
    'git status ${x:=y}',
    'git status ${x:-$(rm y)}',
    'git s* ',
    'git $x',
    'git status &>/dev/null',
    'git status |& git status',
  ])('asks about %j though a rule allows git status', (script) => {
    expect(evaluate(script, { execPolicy: [gitStatus], approval: 'unless-trusted' })).toMatchObject({
      requirement: 'needs-approval',
      bypassSandbox: false,
    });
  });
});
