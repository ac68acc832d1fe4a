import { describe, expect, test } from 'vitest';
import { decide } from '../exec/decide.ts';
import { compileOperatorRules } from './operator-rules.ts';

const FLEET = { name: '/fleet.yaml', text: 'rules: [{ pattern: [git, [push, fetch]], decision: forbid }]' };
const HOST = {
  name: '/host.yaml',
  text: 'rules: [{ pattern: [git], decision: allow }]\nhostExecutables: [{ name: git, paths: [/usr/bin/git] }]',
};
const asked = (script: string, files: Parameters<typeof compileOperatorRules>[0]) =>
  decide(script, {
    operator: compileOperatorRules(files).enforced,
    approval: 'unless-trusted',
    sandboxed: true,
    escalate: false,
  }).requirement;

describe('the rules of an operator', () => {
  test('apply together from all files, and the strictest rule wins', () => {
    expect(asked('git push', [FLEET, HOST])).toBe('forbidden');
    expect(asked('git gc', [FLEET, HOST])).toBe('skip');
    expect(asked('git gc', [FLEET])).toBe('needs-approval');
  });

  test('may name programs whose paths another file lists', () => {
    const names = { name: '/fleet.yaml', text: 'rules: [{ pattern: [git, gc], decision: allow }]' };
    const paths = { name: '/host.yaml', text: 'hostExecutables: [{ name: git, paths: [/usr/bin/git] }]' };
    expect(asked('/usr/bin/git gc', [names])).toBe('needs-approval');
    expect(asked('/usr/bin/git gc', [names, paths])).toBe('skip');
  });

  test('are kept apart if their file has reportOnly', () => {
    const { enforced, reported } = compileOperatorRules([{ ...FLEET, text: `${FLEET.text}\nreportOnly: true` }, HOST]);
    expect([enforced.length, reported.length]).toEqual([1, 1]);
  });

  test('have a digest that changes with every rule, and is empty without rules', () => {
    expect(compileOperatorRules([]).digest).toBe('');
    expect(compileOperatorRules([{ name: '/empty.yaml', text: '# none yet\n' }]).digest).toBe('');
    const digests = [[FLEET], [HOST], [FLEET, HOST]].map((files) => compileOperatorRules(files).digest);
    expect(new Set([...digests, '']).size).toBe(4);
  });

  test('have a digest that changes with the paths of programs and with reportOnly', () => {
    const paths = { ...HOST, text: HOST.text.replace('/usr/bin/git', '/opt/git/bin/git') };
    const reports = { ...HOST, text: `${HOST.text}\nreportOnly: true` };
    const digests = [HOST, paths, reports].map((file) => compileOperatorRules([FLEET, file]).digest);
    expect(new Set(digests).size).toBe(3);
  });

  test.each([
    ['rules: [{ pattern: [git], decision: maybe }]', "/a.yaml, line 1: rules[0].decision must be 'allow'"],
    [
      'rules: [{ pattern: git, decision: maybe }]',
      "/a.yaml, line 1: rules[0].pattern must be a list of words; /a.yaml, line 1: rules[0].decision must be 'allow'",
    ],
    [
      'rules: [{ name: a, pattern: [git], decision: allow, matc: [], b: 1 }]',
      "/a.yaml, line 1: rules[0] must be a rule: { pattern, decision, justification?, match?, notMatch? }; it has the unknown fields 'name', 'matc' and 'b'",
    ],
    [
      'rulez: []',
      "/a.yaml, line 1: must have only these fields: rules, hostExecutables, reportOnly; it has the unknown field 'rulez'",
    ],
    [
      'rules: [{ pattern: [git, push], decision: forbid, match: [git fetch] }]',
      'The rules of /a.yaml are not valid: rules.0.match.0: the example `git fetch` does not match `git push`',
    ],
    [
      'hostExecutables: [{ name: git, paths: [/usr/bin/gut] }]',
      'The rules of /a.yaml are not valid: hostExecutables.0.paths.0',
    ],
  ])('are refused with file and place in the error if the file is %j', (text, message) => {
    expect(() => compileOperatorRules([FLEET, { name: '/a.yaml', text }])).toThrow(message);
  });
});
