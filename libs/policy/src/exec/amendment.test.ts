import { describe, expect, test } from 'vitest';
import { evaluate } from './evaluate.ts';

const amendmentOf = (script: string) => evaluate(script, { approval: 'unless-trusted' }).amendment;

describe('the amendment of a question', () => {
  test.each([
    ['mkdir -p build', ['mkdir', '-p', 'build']],
    ['mkdir  -p build # fast', ['mkdir', '-p', 'build']],
    [`touch 'two words'`, ['touch', 'two words']],
    ['cat x && mkdir y', ['mkdir', 'y']],
    ['mkdir y; ls; mkdir y', ['mkdir', 'y']],
  ])('has all words of the command that a person is asked about: %s', (script, pattern) => {
    expect(amendmentOf(script)).toEqual({ pattern, decision: 'allow' });
  });

  test('allows only commands that begin with all words of the command in the question', () => {
    const { amendment } = evaluate('cp -r a b', { approval: 'unless-trusted' });
    const allows = (script: string) =>
      evaluate(script, { execPolicy: [amendment!], approval: 'unless-trusted' }).requirement === 'skip';
    expect(allows('cp -r a b c')).toBe(true);
    for (const script of ['cp -r', 'cp a b -r', 'cp -r a b; touch x', '/tmp/cp -r a b'])
      expect(allows(script)).toBe(false);
  });

  test.each([
    'python3 x.py',
    'python3.12 -c 1',
    'bash -c ls',
    'sh x',
    'node x',
    'env cargo build',
    'sudo cargo build',
    'eval cargo build',
    'command cargo build',
    'exec cargo build',
    '. ./x',
    'xargs cargo',
    'ssh host',
    'awk 1',
    'git',
    'git -C x status',
    'npm run build',
    'npm exec x',
    'cargo run',
    'npx x',
    'make all',
    'docker ps',
    `test -v 'a[0]'`,
    'printf x',
    'trap x EXIT',
    'alias x=y',
    'export x',
    'sort x',
    ...'prlimit choom setarch linux64 fakeroot faketime systemd-run pkexec start-stop-daemon cpulimit unbuffer valgrind xvfb-run'.split(
      ' ',
    ),
    ...'logsave runcon capsh sg bwrap proot tar git cargo curl sed find patch diff install rg'.split(' '),
    'fakeroot make',
    'make-it',
    'a-program-of-tomorrow x',
    // A rule for `rm` would also allow further words such as -rf.
    'rm x',
    'shred x',
  ])('is not offered for a program that may start others or is not listed: %s', (script) => {
    expect(amendmentOf(script)).toBeUndefined();
  });

  test.each([
    ['a program at a path, which the session may write', './build.sh'],
    ['a program at an absolute path', '/workspace/build'],
    ['words that the shell expands', 'mkdir $x'],
    ['a pattern of file names', 'mkdir *'],
    ['two commands that are asked about', 'mkdir build; mkdir test'],
    ['a dangerous command', 'rm -f x'],
    ['a redirection', 'mkdir build > x'],
    ['a substitution', 'mkdir "$(cat x)"'],
    ['a here-document', "mkdir build <<'EOF'\nx\nEOF\n"],
    ['an assignment before the command', 'A=1 mkdir build'],
    ['a subshell', '(mkdir build)'],
    ['what no parser can read', 'mkdir build "'],
    ['an empty word', "mkdir ''"],
  ])('is not offered for %s', (_, script) => {
    expect(evaluate(script, { approval: 'unless-trusted' })).toMatchObject({ requirement: 'needs-approval' });
    expect(amendmentOf(script)).toBeUndefined();
  });

  test('is not offered when a rule asks, or the command asks to leave the sandbox', () => {
    const prompt = { pattern: ['git', 'push'], decision: 'prompt' as const };
    const approval = 'unless-trusted';
    expect(evaluate('git push', { execPolicy: [prompt], approval }).amendment).toBeUndefined();
    expect(evaluate('mkdir build; git push', { execPolicy: [prompt], approval }).amendment).toBeUndefined();
    expect(evaluate('mkdir build', { approval, escalate: true }).amendment).toBeUndefined();
  });
});
