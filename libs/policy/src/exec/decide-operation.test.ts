import type { ApprovalPolicy, PrefixRule } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { compileRules } from './compile-rules.ts';
import { decide } from './decide.ts';
import { coversAll, decideOperations, rulesNameFiles } from './decide-operation.ts';
import { normalizePath, type OperationWords } from './operation-words.ts';

const rule = (decision: PrefixRule['decision'], ...pattern: PrefixRule['pattern']): PrefixRule => ({
  pattern,
  decision,
});
const op = (...words: string[]): OperationWords => ({ words });
const compiled = (...rules: PrefixRule[]) => compileRules(rules, { source: 'test' });
const about = (operations: OperationWords[], rules: PrefixRule[] = [], approval?: ApprovalPolicy) =>
  decideOperations(operations, { operator: [compiled(...rules)], approval, sandboxed: true });
const requirement = (operation: OperationWords, rules: PrefixRule[], approval?: ApprovalPolicy) =>
  about([operation], rules, approval).requirement;

describe('a decision about file operations and tools', () => {
  test.each<[ApprovalPolicy | undefined, string, string]>([
    [undefined, 'skip', 'skip'],
    ['never', 'skip', 'skip'],
    ['on-request', 'skip', 'skip'],
    ['unless-trusted', 'skip', 'needs-approval'],
  ])('follows the table for commands under %s without a rule, with reads as safe commands', (approval, read, write) => {
    expect(requirement({ words: ['files.read', '/a'], isSafe: true }, [], approval)).toBe(read);
    expect(requirement(op('files.write', '/a'), [], approval)).toBe(write);
    expect(requirement(op('tool', 'resize'), [], approval)).toBe(write);
  });

  test("asks about every read and write without a rule, under askByDefault 'sandboxed'", () => {
    const context = { operator: [], approval: 'on-request', sandboxed: true, askByDefault: 'sandboxed' } as const;
    for (const words of [
      ['files.read', '/a'],
      ['files.write', '/a'],
    ])
      expect(decideOperations([{ words, isSafe: words[0] === 'files.read' }], context)).toMatchObject({
        requirement: 'needs-approval',
        reason: `No rule decides about \`${words.join(' ')}\`, and the session asks about every such operation.`,
      });
  });

  test.each([
    ['files.write', '/workspace', true],
    ['files.write', '/workspace/a/b', true],
    ['files.write', '/workspaces', false],
    ['files.write', '/', false],
    ['files.read', '/workspace', false],
  ])("applies a rule's path to itself and what is below it: %s %s", (name, path, matches) => {
    for (const directory of ['/workspace', '/workspace/', '/x/../workspace'])
      expect(requirement(op(name, path), [rule('forbid', 'files.write', directory)])).toBe(
        matches ? 'forbidden' : 'skip',
      );
  });

  test('applies a rule without a path to every path', () => {
    const noFiles = [rule('forbid', 'files.read')];
    expect(['/', '/workspace/a'].map((path) => requirement(op('files.read', path), noFiles))).toEqual([
      'forbidden',
      'forbidden',
    ]);
  });

  test('follows the strictest rule, and names that rule in the reason', () => {
    const rules = [
      rule('allow', 'files.write', '/workspace'),
      { ...rule('forbid', ['files.write', 'files.remove'], '/workspace/.git'), justification: 'It is the history.' },
      rule('prompt', 'tool', 'deploy'),
    ];
    expect(requirement(op('files.write', '/workspace/a'), rules, 'unless-trusted')).toBe('skip');
    expect(about([op('files.write', '/workspace/a'), op('files.write', '/workspace/.git/config')], rules)).toEqual({
      requirement: 'forbidden',
      reason:
        'The rule `files.write|files.remove /workspace/.git` forbids `files.write /workspace/.git/config`. It is the history.',
      matchedRules: [rules[0], rules[1]],
      asking: [],
      segments: [
        { words: ['files.write', '/workspace/a'], row: 'allow', matchedRules: [rules[0]] },
        { words: ['files.write', '/workspace/.git/config'], row: 'forbid', matchedRules: [rules[1], rules[0]] },
      ],
    });
    expect(about([op('tool', 'resize'), op('tool', 'deploy')], rules)).toMatchObject({
      requirement: 'needs-approval',
      reason: 'The rule `tool deploy` asks about `tool deploy`.',
      asking: [op('tool', 'deploy')],
    });
  });

  test('forbids removals above a forbidden path, but allows none above an allowed path', () => {
    const forbidden = [rule('forbid', ['files.remove', 'files.rename', 'files.write'], '/a/b')];
    expect(requirement({ ...op('files.remove', '/a'), takesDirectory: true }, forbidden)).toBe('forbidden');
    expect(requirement({ ...op('files.rename', '/a', '/c'), takesDirectory: true }, forbidden)).toBe('forbidden');
    expect(requirement(op('files.write', '/a'), forbidden)).toBe('skip');
    expect(requirement(op('files.remove', '/a'), [rule('allow', 'files.remove', '/a/b')], 'unless-trusted')).toBe(
      'needs-approval',
    );
  });

  test('compares other names of an operation with rules that forbid, not with rules that allow', () => {
    const renamed = { ...op('files.rename', '/a', '/b/c'), alsoStrict: [['files.write', '/b/c']] };
    expect(requirement(renamed, [rule('forbid', 'files.write', '/b')])).toBe('forbidden');
    expect(requirement(renamed, [rule('allow', 'files.write', '/b')], 'unless-trusted')).toBe('needs-approval');
  });

  test('lets a rule about files forbid a shell command of its name, never allow it', () => {
    const script = 'files.write /workspace';
    const context = { approval: 'unless-trusted', sandboxed: true, escalate: false } as const;
    const under = (...rules: PrefixRule[]) =>
      decide(script, { ...context, operator: [compiled(...rules)] }).requirement;
    expect(under(rule('allow', 'files.write'))).toBe('needs-approval');
    expect(under(rule('forbid', 'files.write'))).toBe('forbidden');
  });

  test('compares the examples of a rule about files as operations', () => {
    const pattern = ['files.write', '/etc'];
    const load = (match: string[], notMatch: string[]) => compiled({ pattern, decision: 'allow', match, notMatch });
    expect(load(['files.write /etc/passwd'], ['files.write /etcetera', 'files.read /etc']).count).toBe(1);
    expect(() => load(['files.write /tmp'], [])).toThrow('the example `files.write /tmp` does not match');
  });

  test('extends a pattern of a directory to everything in it, and to nothing else', () => {
    const covers = (...operations: OperationWords[]) => coversAll([['files.write', 'files.mkdir'], '/a'], operations);
    expect([
      covers(op('files.write', '/a/b'), op('files.mkdir', '/a')),
      covers(op('files.write', '/a/b'), op('files.write', '/b')),
      covers(op('files.remove', '/a/b')),
    ]).toEqual([true, false, false]);
  });

  test('tells by the first words of rules whether they are about files', () => {
    expect([
      rulesNameFiles([compiled(rule('allow', 'git'), rule('forbid', 'tool'))]),
      rulesNameFiles([compiled(rule('allow', 'files.write', '/a'))]),
      rulesNameFiles([compiled(rule('allow', 'files.read', '/a'))], ['files.read']),
      rulesNameFiles([compiled(rule('forbid', ['git', 'files.read'], '/a'))], ['files.read']),
    ]).toEqual([false, true, false, true]);
  });

  test.each([
    ['/a/./b//c/', '/a/b/c'],
    ['/a/../../b', '/b'],
    ['/', '/'],
  ])('normalizes the path %s to %s', (path, expected) => expect(normalizePath(path)).toBe(expected));
});
