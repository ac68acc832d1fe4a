import type { ApprovalPolicy, PrefixRule } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { rulesLoad } from '../../test-support/rules-load.ts';
import { compileRules } from './compile-rules.ts';
import { decide } from './decide.ts';

const rule = (decision: PrefixRule['decision'], ...pattern: PrefixRule['pattern']): PrefixRule => ({
  pattern,
  decision,
});

interface Given {
  env?: string[];
  operator?: PrefixRule[][];
  session?: PrefixRule[];
  approval?: ApprovalPolicy;
  escalate?: boolean;
}

function decideWith(script: string, { operator = [], session = [], approval, escalate = false, env = [] }: Given) {
  return decide(script, {
    operator: operator.map((rules, index) => compileRules(rules, { source: `file ${index}` })),
    session: [compileRules(session, { source: 'the session' })],
    approval,
    sandboxed: true,
    escalate,
    env,
  });
}

describe('a decision about a script', () => {
  test('follows the strictest of all rules that match, in whatever file or order', () => {
    const [allow, prompt, forbid] = [
      rule('allow', 'git'),
      rule('prompt', 'git', 'push'),
      rule('forbid', 'git', 'push', '-f'),
    ];
    for (const operator of [[[allow], [prompt], [forbid]], [[forbid, prompt, allow]], [[prompt], [forbid, allow]]]) {
      expect(decideWith('git log', { operator }).requirement).toBe('skip');
      expect(decideWith('git push', { operator }).requirement).toBe('needs-approval');
      expect(decideWith('git push -f', { operator }).requirement).toBe('forbidden');
      expect(decideWith('git log; git push -f', { operator }).requirement).toBe('forbidden');
    }
  });

  test("keeps the operator's rules where a session's rule allows", () => {
    const session = [rule('allow', 'git'), rule('allow', 'rm')];
    expect(decideWith('git push', { operator: [[rule('prompt', 'git', 'push')]], session }).requirement).toBe(
      'needs-approval',
    );
    expect(decideWith('git push', { operator: [[rule('forbid', 'git', 'push')]], session }).requirement).toBe(
      'forbidden',
    );
  });

  test("skips an approval that a session's own rule allows, and stays in the sandbox", () => {
    const session = [rule('allow', 'cargo')];
    const approval = 'unless-trusted';
    expect(decideWith('cargo build', { session, approval })).toMatchObject({
      requirement: 'skip',
      bypassSandbox: false,
    });
    expect(decideWith('cargo build', { session, approval, escalate: true }).requirement).toBe('needs-approval');
    expect(decideWith('cargo build', { session, escalate: true }).requirement).toBe('forbidden');
    const operator = [[rule('allow', 'git')]];
    expect(decideWith('git log; cargo build', { operator, session, approval })).toMatchObject({
      requirement: 'skip',
      bypassSandbox: false,
    });
  });

  test("follows a session's rule that prompts or forbids where the operator's rule allows", () => {
    const operator = [[rule('allow', 'git')]];
    expect(decideWith('git push', { operator, session: [rule('prompt', 'git', 'push')] }).requirement).toBe(
      'needs-approval',
    );
    expect(decideWith('git push', { operator, session: [rule('forbid', 'git', 'push')] })).toMatchObject({
      requirement: 'forbidden',
      bypassSandbox: false,
    });
  });

  test.each(['PATH', 'LD_LIBRARY_PATH', 'RIPGREP_CONFIG_PATH'])(
    'allows no command whose env sets %s, which can change what its programs do',
    (name) => {
      const operator = [[rule('allow', 'git')]];
      for (const script of ['git log', 'ls'])
        expect(decideWith(script, { operator, approval: 'unless-trusted', env: [name] })).toMatchObject({
          requirement: 'needs-approval',
          classification: 'unknown',
          bypassSandbox: false,
        });
      expect(decideWith('git log', { operator, approval: 'unless-trusted', env: ['CI'] }).requirement).toBe('skip');
    },
  );

  test.each([
    '/usr/bin/git push',
    './git push',
    'sudo git push',
    'sudo -u x git push',
    'env A=1 git push',
    'A=1 git push',
    'time git push',
    'ls; git push',
    'ls | xargs git push',
    'echo "$(git push)"',
    'cat <(git push)',
    'cat <<EOF\n$(git push)\nEOF\n',
    'if true; then git push; fi',
    'f() { git push; }',
    'git push > x',
    'git push &',
    `sh -c 'git push'`,
    `eval git push`,
    `eval 'git push'`,
    `g""it pu\\sh`,
    `$'git' push`,
    'git $x',
    'git *',
    'command git push',
    'find . -exec git push ;',
    'git push "',
  ])('finds the forbidden git push in %j', (script) => {
    expect(decideWith(script, { operator: [[rule('forbid', 'git', 'push')]] }).requirement).toBe('forbidden');
  });

  // docs/rules.md names these scripts, which hide their words from rules.
  test.each(['x=git; $x push', 'eval "$(cat x)"', '. ./script', 'python3 x.py', `printf 'git push' | sh`])(
    'does not find the forbidden git push in %j',
    (script) => {
      expect(decideWith(script, { operator: [[rule('forbid', 'git', 'push')]] }).requirement).toBe('skip');
    },
  );

  test.each([
    'rm -f x',
    'rm -rf /',
    'rm --force x',
    'rm -r -f x',
    '/bin/rm -f x',
    'sudo rm -f x',
    'ls; rm -f x',
    'if true; then rm -f x; fi',
    'echo $(rm -f x)',
    `bash -c 'rm -f x'`,
    'sh -c reboot',
    'dd if=x of=/dev/sda',
    'mkfs.ext4 /dev/sda',
  ])('asks about a command that destroys data: %s', (script) => {
    expect(decideWith(script, { approval: 'on-request' })).toMatchObject({
      requirement: 'needs-approval',
      classification: 'dangerous',
    });
  });

  test.each(['rm x', 'rm -- -f', 'rm -r x', 'dd if=/dev/zero of=/dev/null', 'echo rm -f x', 'grep -f x'])(
    'does not ask about a command that only looks destructive: %s',
    (script) => {
      expect(decideWith(script, { approval: 'on-request' }).requirement).toBe('skip');
    },
  );

  test.each(['ls $x', 'ls *', 'ls > x', 'ls &', 'ls -l; x', 'cat <<E\nx\nE\n'])(
    'does not count a safe command with an expansion or redirection as safe: %j',
    (script) => {
      expect(decideWith('ls', {}).classification).toBe('safe');
      expect(decideWith(script, {}).classification).toBe('unknown');
    },
  );

  test('lists each command of a script with its row in the table and its rules', () => {
    const [allow, forbid] = [
      rule('allow', 'git'),
      { ...rule('forbid', 'git', 'push'), justification: 'Releases push.' },
    ];
    expect(decideWith(`git log; git push 'a b'`, { operator: [[allow, forbid]] })).toEqual({
      requirement: 'forbidden',
      reason: 'The rule `git push` forbids `git push a b`. Releases push.',
      matchedRules: [allow, forbid],
      classification: 'unknown',
      bypassSandbox: false,
      segments: [
        { words: ['git', 'log'], row: 'allow', matchedRules: [allow] },
        { words: ['git', 'push', 'a b'], row: 'forbid', matchedRules: [forbid, allow] },
      ],
    });
  });

  const LONG = `git push #${'x'.repeat(70_000)}`;

  test('forbids a script that is too long to read if any rule forbids or asks', () => {
    for (const given of [{ operator: [[rule('forbid', 'tool')]] }, { session: [rule('prompt', 'tool')] }])
      expect(decideWith(LONG, given)).toMatchObject({
        requirement: 'forbidden',
        reason: 'It is too long to be compared with the rules that forbid or ask.',
      });
    expect(decideWith(LONG, { operator: [[rule('allow', 'git')]] })).toMatchObject({
      requirement: 'skip',
      bypassSandbox: false,
    });
  });

  test.each([
    ['many arguments of a wrapper', `sudo ${'a '.repeat(32_000)}`],
    ['many wrappers', 'sudo '.repeat(13_000)],
    ['many scripts in arguments', `sudo ${"'a;b' ".repeat(10_000)}`],
    ['evaluations of evaluations', `eval ${'eval '.repeat(13_000)}`],
    ['many commands', 'rm -f x;'.repeat(8_000)],
    ['many substitutions', '$('.repeat(20_000)],
  ])('takes a bounded time for %s', (_, script) => {
    const before = process.cpuUsage();
    decideWith(script, { operator: [[rule('forbid', 'git', 'push')]], approval: 'on-request' });
    expect(process.cpuUsage(before).user).toBeLessThan(3_000_000);
  });

  // docs/rules.md has the figure; this test finds a decision that has become many times slower.
  test.each(rulesLoad())('takes microseconds under 200 rules: $name', ({ bytes, decideOnce }) => {
    expect(bytes).toBeLessThanOrEqual(200);
    for (let warm = 0; warm < 500; warm += 1) decideOnce();
    const before = process.cpuUsage();
    for (let times = 0; times < 500; times += 1) decideOnce();
    expect(process.cpuUsage(before).user / 500).toBeLessThan(1_000);
  });

  test('asks about a script that is too long or too deep to read, under unless-trusted', () => {
    const allowed = { operator: [[rule('allow', 'ls')]], approval: 'unless-trusted' as const };
    for (const script of [`ls ${'x'.repeat(70_000)}`, `${'$('.repeat(20_000)}ls${')'.repeat(20_000)}`, 'ls \0 x'])
      expect(decideWith(script, allowed)).toMatchObject({ requirement: 'needs-approval', bypassSandbox: false });
  });
});
