import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditEvent } from '@shellfleet/protocol';
import { auditKeys, CHAIN_START, toAuditLine } from '@shellfleet/sealing';
import { afterAll, describe, expect, test } from 'vitest';
import type { Context } from './context.ts';
import { replayRules } from './rules-replay.ts';

const state = mkdtempSync(join(tmpdir(), 'shellfleet-replay-'));
afterAll(() => rmSync(state, { recursive: true }));

const rules = join(state, 'rules.yaml');
writeFileSync(
  rules,
  'rules: [{ pattern: [git, push], decision: forbid }, { pattern: [git, fetch], decision: prompt }]\nreportOnly: true',
);
const HOUR = 3_600_000;
const now = Date.now();
const [key] = auditKeys(['0'.repeat(64)], { namespace: 'n', host: 'h', tenant: 'acme' });

/** Writes the audit of one tenant. */
function write(events: readonly (readonly [AuditEvent, number])[]): void {
  const directory = join(state, 'hosts', 'h', 'audit', 't-acme');
  mkdirSync(directory, { recursive: true });
  let head = CHAIN_START;
  const lines = events.map(([event, at]) => {
    if (key === undefined) throw new Error('no key');
    const next = toAuditLine(event, head, new Date(at).toISOString(), key);
    head = next.head;
    return next.line;
  });
  writeFileSync(join(directory, '000000000001.jsonl'), lines.join(''));
}

const of = (entry: string) => ({ session: 's', generation: 'g', entry });
const submitted = (entry: string, script: string, own = {}): AuditEvent => ({
  ...{ type: 'submission', ...of(entry), kind: 'command', acceptedAt: '', policy: 'docker', script },
  ...own,
});
const started = (entry: string): AuditEvent => ({ type: 'start', ...of(entry), fence: 1, epoch: 1 });

async function replay(flags: { since: number; json?: boolean }): Promise<unknown[]> {
  const printed: unknown[] = [];
  const print = async (value: unknown) => void printed.push(value);
  const terminal = { json: print, line: print, table: print };
  const config = { env: { SHELLFLEET_STATE_DIR: state } };
  await replayRules({ terminal, config } as unknown as Context, { file: [rules], ...flags });
  return printed;
}

describe('rules replay', () => {
  test('prints once per started command what the rules would decide, and what is unknown', async () => {
    const recent = now - HOUR;
    write([
      [submitted('old', 'git push'), now - 3 * HOUR],
      [started('old'), now - 3 * HOUR],
      [submitted('a', 'git push -f'), recent],
      // A command that was decided twice.
      [submitted('a', 'git push -f'), recent],
      [started('a'), recent],
      [submitted('b', 'git fetch'), recent],
      [started('b'), recent],
      [submitted('c', 'make "\u2028"'), recent],
      [started('c'), recent],
      [submitted('never-ran', 'git push'), recent],
      [submitted('long', 'make', { scriptOmitted: 5 }), recent],
      [started('long'), recent],
      [submitted('file', '', { kind: 'file', script: undefined }), recent],
      [started('file'), recent],
    ]);
    const at = new Date(recent).toISOString();
    const reasons = ['The rule `git push` forbids `git push -f`.', 'The rule `git fetch` asks about `git fetch`.'];
    const common = { type: 'command', at, tenant: 'acme', session: 's' };
    expect(await replay({ since: 2 * HOUR, json: true })).toEqual([
      { ...common, script: 'git push -f', requirement: 'forbidden', reason: reasons[0] },
      { ...common, script: 'git fetch', requirement: 'needs-approval', reason: reasons[1] },
      { type: 'summary', commands: 4, forbidden: 1, needsApproval: 1, unknown: 1 },
    ]);
    expect(await replay({ since: 2 * HOUR })).toEqual([
      [
        ['AT', 'TENANT', 'SESSION', 'IT WOULD BE', 'WHY', 'SCRIPT'],
        [at, 'acme', 's', 'denied', reasons[0], 'git push -f'],
        [at, 'acme', 's', 'asked', reasons[1], 'git fetch'],
      ],
      'Of 4 commands that started, these rules would have denied 1 and asked a person about 1.',
      'Not known: 1, of which the audit does not have the whole script.',
      expect.stringMatching(/^Not known either: /),
    ]);
  });

  test('names the missing argument without an audit or without rules', async () => {
    const none = { terminal: {}, config: { env: { SHELLFLEET_STATE_DIR: '/nonexistent' } } } as unknown as Context;
    await expect(replayRules(none, { since: HOUR, file: [rules] })).rejects.toThrow('name the directory with --audit');
    await expect(replayRules(none, { since: HOUR })).rejects.toThrow('--file');
  });
});
