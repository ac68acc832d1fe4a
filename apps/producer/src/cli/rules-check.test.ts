import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { evaluate } from '@shellfleet/policy';
import { afterAll, describe, expect, test } from 'vitest';
import type { Context } from './context.ts';
import { type CheckFlags, checkRules } from './rules-check.ts';

const directory = mkdtempSync(join(tmpdir(), 'shellfleet-check-'));
afterAll(() => rmSync(directory, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}
const PUSH = 'rules: [{ pattern: [git, push], decision: forbid, justification: Ask first. }]';

/** Returns the output of `rules check`: JSON values, lines, and the rows of tables. */
async function check(words: string[], flags: CheckFlags = {}): Promise<unknown[]> {
  const printed: unknown[] = [];
  const print = async (value: unknown) => void printed.push(value);
  await checkRules({ terminal: { json: print, line: print, table: print } } as unknown as Context, words, flags);
  return printed;
}

describe('rules check', () => {
  test('prints the result of evaluate with --json', async () => {
    for (const [script, approval] of [
      ['git status; rm -rf /', 'on-request'],
      ['make', 'unless-trusted'],
      ['make', undefined],
    ] as const)
      expect(await check([script], { json: true, ...(approval && { approval }) })).toEqual([
        evaluate(script, approval ? { approval } : {}),
      ]);
  });

  test('uses the rules of all files, including those that only report', async () => {
    const files = [
      file('a.yaml', 'rules: [{ pattern: [git], decision: allow }]'),
      file('b.yaml', `${PUSH}\nreportOnly: true`),
    ];
    expect(await check(['git', 'push', '-f'], { file: files })).toEqual([
      'It is denied. The rule `git push` forbids `git push -f`. Ask first.',
      'It is not known to be safe or dangerous.',
      '',
      [
        ['COMMAND', 'IS', 'BY THE RULES'],
        ['git push -f', 'forbid', 'git, git push'],
      ],
    ]);
  });

  test('tests a file against its examples when no command is given', async () => {
    const good = file('good.yaml', PUSH);
    expect(await check([], { file: [good] })).toEqual([`${good}: 1 rule; all examples hold.`]);
    const bad = file('bad.yaml', 'rules: [{ pattern: [git], decision: allow, match: [make] }]');
    await expect(check([], { file: [bad] })).rejects.toMatchObject({ code: 'RULES_INVALID' });
    const broken = file('broken.yaml', 'rules: [');
    await expect(check([], { file: [broken] })).rejects.toMatchObject({ code: 'RULES_INVALID' });
    await expect(check([], { file: ['/absent.yaml'] })).rejects.toThrow('--file /absent.yaml cannot be read');
    await expect(check([])).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
  });
});
