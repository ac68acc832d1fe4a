import { expect, test } from 'vitest';
import { evaluate } from './evaluate.ts';

const amendmentOf = (script: string) => evaluate(script, { approval: 'unless-trusted' }).amendment;

test.each([
  ['cargo build', ['cargo', 'build']],
  ['cargo  build --release # fast', ['cargo', 'build', '--release']],
  [`git commit -m 'two words'`, ['git', 'commit', '-m', 'two words']],
  ['cat x && make-it', ['make-it']],
  ['make-it; ls; make-it', ['make-it']],
])('offers a rule with all words of the command that is asked about: %s', (script, pattern) => {
  expect(amendmentOf(script)).toEqual({ pattern, decision: 'allow' });
});

test('what an amendment allows begins with all the words that were asked about', () => {
  const { amendment } = evaluate('cargo build --release', { approval: 'unless-trusted' });
  const allows = (script: string) =>
    evaluate(script, { execPolicy: [amendment!], approval: 'unless-trusted' }).requirement === 'skip';
  expect(allows('cargo build --release --offline')).toBe(true);
  for (const script of [
    'cargo build',
    'cargo build --offline --release',
    'cargo build --release; cargo run',
    '/tmp/cargo build --release',
  ])
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
])('never offers one for what runs its arguments: %s', (script) => {
  expect(amendmentOf(script)).toBeUndefined();
});

test.each([
  ['a program at a path, which the session may write', './build.sh'],
  ['a program at an absolute path', '/workspace/build'],
  ['words that the shell expands', 'cargo build $x'],
  ['a pattern of file names', 'cargo build *'],
  ['two commands that are asked about', 'cargo build; cargo test'],
  ['a dangerous command', 'rm -f x'],
  ['a redirection', 'cargo build > x'],
  ['a substitution', 'cargo build "$(cat x)"'],
  ['a here-document', "cargo build <<'EOF'\nx\nEOF\n"],
  ['an assignment before the command', 'A=1 cargo build'],
  ['a subshell', '(cargo build)'],
  ['what no parser can read', 'cargo build "'],
  ['an empty word', "cargo ''"],
])('never offers one for %s', (_, script) => {
  expect(evaluate(script, { approval: 'unless-trusted' })).toMatchObject({ requirement: 'needs-approval' });
  expect(amendmentOf(script)).toBeUndefined();
});

test('never offers one when a rule asks, or when the command asks to leave the sandbox', () => {
  const prompt = { pattern: ['git', 'push'], decision: 'prompt' as const };
  const approval = 'unless-trusted';
  expect(evaluate('git push', { execPolicy: [prompt], approval }).amendment).toBeUndefined();
  expect(evaluate('cargo build; git push', { execPolicy: [prompt], approval }).amendment).toBeUndefined();
  expect(evaluate('cargo build', { approval, escalate: true }).amendment).toBeUndefined();
});
