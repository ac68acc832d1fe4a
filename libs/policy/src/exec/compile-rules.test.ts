import { isShellfleetError, type PrefixRule } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { compileRules, type HostExecutable } from './compile-rules.ts';
import { decide } from './decide.ts';

function messageOf(rules: unknown[], hostExecutables: HostExecutable[] = []): string {
  try {
    compileRules(rules, { source: '/etc/rules.yaml', hostExecutables });
  } catch (error) {
    expect(isShellfleetError(error) && error.code).toBe('RULES_INVALID');
    return (error as Error).message;
  }
  return 'valid';
}

const git = { pattern: ['git', ['status', 'log']], decision: 'allow' };

describe('compiled rules', () => {
  test.each<[string, unknown, string]>([
    ['is no object', 'git', 'rules.0: must be a rule: { pattern, decision, justification?, match?, notMatch? }'],
    ['has no pattern', { decision: 'allow' }, 'rules.0.pattern: must be a list of words'],
    ['has an empty pattern', { ...git, pattern: [] }, 'rules.0.pattern: must hold a word'],
    ['has an empty word', { ...git, pattern: [''] }, 'rules.0.pattern.0: must not be empty'],
    [
      'has a list without an alternative',
      { ...git, pattern: ['git', []] },
      'rules.0.pattern.1: must hold an alternative',
    ],
    [
      'has an unknown decision',
      { ...git, decision: 'deny' },
      "rules.0.decision: must be 'allow', 'prompt' or 'forbid'",
    ],
    ['has an unknown field', { ...git, reason: 'x' }, 'reason'],
    ['has a blank justification', { ...git, justification: ' ' }, 'rules.0.justification: must say why'],
    [
      'has an example that it does not match',
      { ...git, match: ['git log', 'git push'] },
      'rules.0.match.1: the example `git push` does not match `git status|log`',
    ],
    [
      'matches an example of notMatch',
      { ...git, notMatch: ['git log -1'] },
      'rules.0.notMatch.0: the example `git log -1` matches `git status|log`',
    ],
    [
      'has an example of two commands',
      { ...git, match: ['git log; ls'] },
      'rules.0.match.0: the example `git log; ls` is not one plain command',
    ],
    [
      'has an example that no parser can read',
      { ...git, notMatch: ['git "'] },
      'rules.0.notMatch.0: the example `git "` is not one plain command',
    ],
  ])('are not made from a rule that %s: the error names the file and the problem', (_, broken, message) => {
    expect(messageOf([broken])).toContain('/etc/rules.yaml');
    expect(messageOf([broken])).toContain(message);
  });

  test('are refused with an error that names every wrong rule and example', () => {
    const message = messageOf([git, { ...git, match: ['ls', 'git log', 'pwd'] }, { ...git, decision: 'no' }]);
    for (const part of ['rules.1.match.0: the example `ls`', 'rules.1.match.2: the example `pwd`', 'rules.2.decision'])
      expect(message).toContain(part);
    expect(message).not.toContain('rules.0');
  });

  test.each<[HostExecutable, string]>([
    [{ name: '', paths: [] }, 'hostExecutables.0.name: must be the name of a program, without a path'],
    [{ name: 'bin/git', paths: [] }, 'hostExecutables.0.name: must be the name of a program, without a path'],
    [
      { name: 'git', paths: ['/usr/bin/git', 'bin/git'] },
      'hostExecutables.0.paths.1: must be an absolute path that ends in /git, without . and ..',
    ],
    [
      { name: 'git', paths: ['/usr/bin/gitk'] },
      'hostExecutables.0.paths.0: must be an absolute path that ends in /git, without . and ..',
    ],
    [
      { name: 'git', paths: ['/usr/../tmp/git'] },
      'hostExecutables.0.paths.0: must be an absolute path that ends in /git, without . and ..',
    ],
  ])('are not made with the host executable %j', (executable, message) => {
    expect(messageOf([], [executable])).toContain(message);
  });

  test('allow a name only at the paths that the operator lists', () => {
    const rules: PrefixRule[] = [{ pattern: ['git', 'log'], decision: 'allow', match: ['/usr/bin/git log'] }];
    const hostExecutables = [{ name: 'git', paths: ['/usr/bin/git', '/opt/bin/git'] }];
    const operator = [compileRules(rules, { source: 'rules', hostExecutables })];
    const requirementOf = (script: string) =>
      decide(script, { operator, approval: 'unless-trusted', sandboxed: true, escalate: false }).requirement;
    for (const path of ['git', '/usr/bin/git', '/opt/bin/git'])
      expect([path, requirementOf(`${path} log`)]).toEqual([path, 'skip']);
    for (const path of ['./git', '/tmp/git', '/usr/local/bin/git', '/usr/bin/../../tmp/git', '/usr//bin/git'])
      expect([path, requirementOf(`${path} log`)]).toEqual([path, 'needs-approval']);
  });

  test('allow only the path that an allow rule names', () => {
    const operator = [compileRules([{ pattern: ['/opt/tool'], decision: 'allow' }], { source: 'rules' })];
    const requirementOf = (script: string) =>
      decide(script, { operator, approval: 'unless-trusted', sandboxed: true, escalate: false }).requirement;
    expect(['/opt/tool x', 'tool x', '/tmp/opt/tool x'].map(requirementOf)).toEqual([
      'skip',
      'needs-approval',
      'needs-approval',
    ]);
  });
});
