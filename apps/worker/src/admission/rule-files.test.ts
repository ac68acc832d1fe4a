import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError } from '../config/config.ts';
import { RuleFiles } from './rule-files.ts';

const directory = mkdtempSync(join(tmpdir(), 'shellfleet-rules-'));
const path = join(directory, 'rules.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

let log: { msg: string; level: number }[] = [];
beforeEach(() => {
  log = [];
});
const logger = pino({}, { write: (line: string) => void log.push(JSON.parse(line)) });
const rule = (decision: string) => `rules: [{ pattern: [git], decision: ${decision} }]`;

function open(text: string) {
  writeFileSync(path, text);
  return new RuleFiles([path], logger);
}

describe('rule files', () => {
  test('stop the start of a worker when they are invalid or missing (RULE-FILES-1)', () => {
    expect(() => open(rule('maybe'))).toThrow(ConfigError);
    expect(() => open(rule('maybe'))).toThrow(`SHELLFLEET_CONFIG: rules: ${path}, line 1: rules[0].decision must be`);
    const absent = join(directory, 'absent.yaml');
    expect(() => new RuleFiles([absent], logger)).toThrow(`open '${absent}'`);
  });

  test('apply a change from the next reload on', () => {
    const files = open(rule('allow'));
    const { digest } = files.rules;
    writeFileSync(path, rule('forbid'));
    files.reload();
    expect(files.rules.digest).not.toBe(digest);
    expect(log.map(({ msg }) => msg)).toEqual(['rules.reloaded']);
  });

  test('keep the previous rules while a changed file is invalid, and warn the operator (RULE-FILES-2)', () => {
    const files = open(rule('forbid'));
    const { rules } = files;
    writeFileSync(path, 'rules: [');
    files.reload();
    expect(files.rules).toBe(rules);
    expect(files.warnings).toEqual([expect.stringContaining(`hold: ${path}, line 1: `)]);
    expect(log).toEqual([expect.objectContaining({ msg: 'rules.reload-failed', level: 50 })]);
    rmSync(path);
    files.reload();
    expect([files.rules, files.warnings]).toEqual([rules, [expect.stringContaining('ENOENT')]]);
    writeFileSync(path, rule('forbid'));
    files.reload();
    expect([files.rules, files.warnings]).toEqual([rules, []]);
  });

  test('notify a watcher only when they change', async () => {
    const files = open(rule('forbid'));
    const changed = new Promise<void>((resolve) => files.watch(resolve));
    writeFileSync(path, rule('prompt'));
    await changed;
    files.close();
    expect(log.map(({ msg }) => msg)).toEqual(['rules.reloaded']);
  });

  test('hold together with the rules of the fleet, which are refused unless all are valid', () => {
    const files = open(rule('allow'));
    const [alone, git] = [files.rules, { pattern: ['git'], decision: 'forbid' as const }];
    expect(files.areKnown).toBe(false);
    files.useFleetRules([git]);
    expect(files.areKnown).toBe(true);
    const together = files.rules;
    expect([together.enforced.length, together.digest === alone.digest]).toEqual([2, false]);
    const wrong = { ...git, match: ['make'] };
    expect(() => files.useFleetRules([wrong])).toThrow("The rules of the fleet's configuration are not valid: rules.0");
    files.reload();
    expect(files.rules).toBe(together);
    files.useFleetRules([]);
    expect(files.rules.digest).toBe(alone.digest);
  });
});
