import { compileOperatorRules } from '@shellfleet/policy';
import {
  type CommandPayload,
  commandPayloadSchema,
  type FileOperation,
  type SessionSpec,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import type { AdmissionInput } from './admission.ts';
import { decideByRules, type ReportedDecision } from './decide-by-rules.ts';

const FORBID_PUSH = 'rules: [{ pattern: [git, push], decision: forbid, justification: Ask the owner. }]';
const PROMPT_FETCH = 'rules: [{ pattern: [git, fetch], decision: prompt }]';

function rulesOf(files: string[], unchecked: Parameters<typeof decideByRules>[1]['unchecked'] = []) {
  const reported: ReportedDecision[] = [];
  const texts = files.map((text, index) => ({ name: `/${index}.yaml`, text }));
  const host = { rules: compileOperatorRules(texts) };
  return { ...decideByRules(host, { unchecked, onReported: (decision) => reported.push(decision) }), reported };
}

interface Asked extends Partial<CommandPayload> {
  script?: string;
  spec?: SessionSpec;
  opens?: boolean;
  attempt?: AdmissionInput['attempt'];
}

function question({ spec = {}, opens = false, attempt = { number: 1 }, ...command }: Asked): AdmissionInput {
  const payload = commandPayloadSchema.parse({
    type: 'command',
    script: 'true',
    timeoutMs: 1_000,
    encoding: 'utf8',
    ...command,
  });
  return {
    ...{ tenant: 't', session: 's', generation: 'g', entryId: 'e', epoch: 1 },
    wider: { refusal: undefined, sandbox: undefined },
    ...{ payload, opens, attempt, spec: sessionSpecSchema.parse(spec) },
  };
}

describe('decisions by rules', () => {
  test("follow an operator's rule that forbids, asks or allows, with its justification", () => {
    const { decide } = rulesOf([FORBID_PUSH, PROMPT_FETCH]);
    expect(decide(question({ script: 'true; git push -f' }))).toEqual({
      type: 'forbid',
      reason: 'The rule `git push` forbids `git push -f`. Ask the owner.',
    });
    expect(decide(question({ script: 'git fetch' }))).toMatchObject({
      type: 'ask',
      question: {
        reason: 'The rule `git fetch` asks about `git fetch`.',
        matchedRules: [{ pattern: ['git', 'fetch'] }],
      },
    });
    expect(decide(question({ script: 'git gc' }))).toEqual({ type: 'allow' });
  });

  test("let session rules and approved rules answer the session's questions, but not the operator's", () => {
    const { decide } = rulesOf([PROMPT_FETCH]);
    const rule = (...pattern: string[]) => ({ pattern, decision: 'allow' as const });
    const approval = 'unless-trusted';
    expect(decide(question({ script: 'make', spec: { approval } })).type).toBe('ask');
    expect(decide(question({ script: 'make', spec: { approval, execPolicy: [rule('make')] } })).type).toBe('allow');
    expect(decide(question({ script: 'make', spec: { approval } }), [rule('make')]).type).toBe('allow');
    const spec: SessionSpec = { approval, execPolicy: [rule('git')] };
    expect(decide(question({ script: 'git fetch', spec }), [rule('git', 'fetch')]).type).toBe('ask');
  });

  test('do not allow a command that sets PATH', () => {
    const { decide } = rulesOf(['rules: [{ pattern: [git], decision: allow }]']);
    const asked = { script: 'git log', spec: { approval: 'unless-trusted' } } as const;
    expect(decide(question({ ...asked, env: { CI: '1' } })).type).toBe('allow');
    expect(decide(question({ ...asked, env: { PATH: '/workspace' } })).type).toBe('ask');
  });

  // fault 105
  test('check variables of the session and its secrets like those of the command', () => {
    const { decide } = rulesOf(['rules: [{ pattern: [git], decision: allow }]']);
    const ask = (spec: SessionSpec) =>
      decide(question({ script: 'ls', spec: { approval: 'unless-trusted', ...spec } }));
    expect(ask({ env: { CI: '1' }, secrets: { TOKEN: 'x' } })).toEqual({ type: 'allow' });
    expect(ask({ env: { PATH: '/workspace/bin:/bin' } }).type).toBe('ask');
    expect(ask({ secrets: { LD_LIBRARY_PATH: '/workspace' } }).type).toBe('ask');
    const spec = { approval: 'unless-trusted', env: { PATH: '/x' }, startupCommands: ['ls'] } as const;
    expect(rulesOf([]).decideOpening(sessionSpecSchema.parse(spec)).type).toBe('ask');
  });

  // fault 104
  test('keep a command in its sandbox if its variables can start other programs', () => {
    const files = ['rules: [{ pattern: [tar], decision: allow }]'];
    const ask = (of: Asked, unchecked: Parameters<typeof rulesOf>[1] = []) =>
      rulesOf(files, unchecked).decide(question({ script: 'tar c x', escalate: { justification: 'j' }, ...of })).type;
    expect(ask({ env: { LANG: 'C', LC_ALL: 'C', TZ: 'UTC' }, spec: { approval: 'on-request' } })).toBe('allow');
    for (const given of [
      { env: { TAR_OPTIONS: 'x' } },
      { spec: { env: { A: 'x' } } },
      { spec: { secrets: { A: 'x' } } },
    ]) {
      expect(ask({ ...given, spec: { approval: 'on-request', ...('spec' in given ? given.spec : {}) } })).toBe('ask');
      expect(ask(given)).toBe('forbid');
      expect(ask(given, ['variables'])).toBe('allow');
      expect(ask({ ...given, escalate: undefined })).toBe('allow');
    }
    expect(ask({ env: { PATH: '/workspace' } }, ['variables'])).toBe('forbid');
  });

  // fault 113
  test('ask about, or refuse, a shell whose arguments may run more than its command', () => {
    const opened = (spec: SessionSpec, files: string[] = [], unchecked: 'shells'[] = []) => {
      const { decide, decideOpening } = rulesOf(files, unchecked);
      const [parsed, live] = [sessionSpecSchema.parse(spec), question({ spec })];
      const restart = { ...live, payload: { type: 'restart' as const } };
      const all = [decide(question({ spec, opens: true })), decide(restart), decideOpening(parsed)].map(
        ({ type }) => type,
      );
      expect(decide(live).type).toBe('allow');
      expect(new Set(all).size).toBe(1);
      return all[0];
    };
    for (const shell of [['/bin/bash', '-c', 'id'], ['/bin/bash', '--login'], ['/bin/zsh'], ['/workspace/bash']]) {
      expect(opened({ shell })).toBe('allow');
      expect(opened({ shell, approval: 'unless-trusted' })).toBe('ask');
      expect(opened({ shell, approval: 'on-request' }, [FORBID_PUSH])).toBe('ask');
      expect(opened({ shell }, [PROMPT_FETCH])).toBe('ask');
      expect(opened({ shell, approval: 'never' }, [FORBID_PUSH])).toBe('forbid');
      expect(opened({ shell, approval: 'never' }, [FORBID_PUSH], ['shells'])).toBe('allow');
    }
    for (const shell of [undefined, ['/bin/bash'], ['dash'], ['/bin/busybox', 'ash']])
      expect(opened({ approval: 'unless-trusted', ...(shell && { shell }) }, [FORBID_PUSH])).toBe('allow');
  });

  test('ask about a restart as about the opening of a shell', () => {
    const spec: SessionSpec = { startupCommands: ['git fetch'] };
    const restart = { ...question({ spec }), payload: { type: 'restart' as const } };
    expect(rulesOf([PROMPT_FETCH]).decide(restart).type).toBe('ask');
  });

  test('mention a command that leaves its sandbox in every question about its entry', () => {
    const { decide } = rulesOf([
      'rules: [{ pattern: [make], decision: allow }, { pattern: [setup], decision: prompt }]',
    ]);
    const escalate = { justification: 'it needs the network' };
    const asked = { script: 'make', escalate, spec: { approval: 'on-request' } } as const;
    const leaves = { outside: true, justification: 'it needs the network' };
    const ask = (of: Asked) => decide(question({ ...asked, ...of }));
    const opening = ask({ opens: true, spec: { ...asked.spec, startupCommands: ['setup'] } });
    expect(opening).toMatchObject({ type: 'ask', question: leaves });
    expect(ask({ input: 'open' })).toMatchObject({ type: 'ask', question: leaves });
    // Both startup commands ask, and the command leaves its sandbox.
    const both = ask({ opens: true, script: 'cc', spec: { ...asked.spec, startupCommands: ['setup', 'setup twice'] } });
    expect(both).toMatchObject({ type: 'ask', question: leaves });
  });

  test('fail the commands of a session with invalid rules', () => {
    const execPolicy = [{ pattern: ['git'], decision: 'allow' as const, match: ['make'] }];
    expect(() => rulesOf([]).decide(question({ spec: { execPolicy } }))).toThrow(
      'The rules of the session (execPolicy)',
    );
  });

  test('include startup and shutdown commands only for the entry that opens the shell', () => {
    const { decide, decideOpening } = rulesOf([FORBID_PUSH, PROMPT_FETCH]);
    const spec = { startupCommands: ['git fetch'], shutdownCommands: ['git fetch --all'] };
    expect(decide(question({ spec }))).toEqual({ type: 'allow' });
    expect(decide(question({ spec, opens: true, script: 'git fetch' }))).toMatchObject({
      type: 'ask',
      question: {
        reason: [
          'The startup command `git fetch` of its session: The rule `git fetch` asks about `git fetch`.',
          'The shutdown command `git fetch --all` of its session: The rule `git fetch` asks about `git fetch --all`.',
          'The rule `git fetch` asks about `git fetch`.',
        ].join(' '),
      },
    });
    expect(decideOpening(sessionSpecSchema.parse({ startupCommands: ['git push'] }))).toMatchObject({
      type: 'forbid',
      reason: expect.stringMatching(/^The startup command `git push` of its session: .*Ask the owner\.$/),
    });
  });

  test('ask about, or refuse, a stdin that is sent while the command runs', () => {
    const streamed = (spec: SessionSpec, files: string[] = [], unchecked: 'stdin'[] = []) =>
      rulesOf(files, unchecked).decide(question({ input: 'streamed', spec }));
    expect(streamed({})).toEqual({ type: 'allow' });
    expect(streamed({ approval: 'never' })).toEqual({ type: 'allow' });
    expect(streamed({ approval: 'on-request' })).toMatchObject({ type: 'ask' });
    expect(streamed({}, [FORBID_PUSH])).toMatchObject({ type: 'ask' });
    expect(streamed({}, [FORBID_PUSH], ['stdin'])).toEqual({ type: 'allow' });
    expect(streamed({ approval: 'never' }, [FORBID_PUSH])).toMatchObject({
      type: 'forbid',
      reason: expect.stringContaining('allow: { unchecked: [stdin] }'),
    });
  });

  test('refuse a terminal that rules cannot check, and name the setting', () => {
    const plain = sessionSpecSchema.parse({});
    const asking = sessionSpecSchema.parse({ approval: 'on-request' });
    expect(rulesOf([]).refuseTerminal(plain)).toBeUndefined();
    expect(rulesOf([FORBID_PUSH]).refuseTerminal(plain)).toMatch(
      /^the rules of this host \(`rules:` in SHELLFLEET_CONFIG\).*unchecked: \[terminals\]/,
    );
    expect(rulesOf([]).refuseTerminal(asking)).toMatch(/^the session's `approval`/);
    expect(rulesOf([FORBID_PUSH], ['terminals']).refuseTerminal(asking)).toBeUndefined();
  });

  test("treat a tool call as the words `tool NAME` under the operator's rules", () => {
    const { decideTool } = rulesOf([
      'rules: [{ pattern: [tool, deploy], decision: forbid, justification: At night. }, { pattern: [tool, [pay]], decision: prompt }]',
    ]);
    expect([decideTool('deploy'), decideTool('pay'), decideTool('resize')]).toMatchObject([
      { type: 'forbid', reason: 'The rule `tool deploy` forbids `tool deploy`. At night.' },
      { type: 'ask', question: { reason: 'The rule `tool pay` asks about `tool pay`.' } },
      { type: 'allow' },
    ]);
  });

  test('require a path without links where rules or the approval mode concern the file operation', () => {
    const asks = (files: string[], operation: FileOperation, spec: SessionSpec = {}) =>
      rulesOf(files).decidesByPath(operation, sessionSpecSchema.parse(spec));
    const mkdir: FileOperation = { name: 'mkdir', path: '/a' };
    const stat: FileOperation = { name: 'stat', path: '/a' };
    const WRITES = 'rules: [{ pattern: [files.write, /a], decision: allow }]';
    const READS = 'rules: [{ pattern: [files.read, /a], decision: forbid }]';
    expect([mkdir, stat].map((operation) => asks([FORBID_PUSH], operation, { approval: 'never' }))).toEqual([
      false,
      false,
    ]);
    expect([mkdir, stat].map((operation) => asks([WRITES], operation))).toEqual([true, false]);
    expect([mkdir, stat].map((operation) => asks([READS], operation))).toEqual([true, true]);
    expect([mkdir, stat].map((operation) => asks([], operation, { approval: 'unless-trusted' }))).toEqual([
      true,
      false,
    ]);
    const execPolicy = [{ pattern: ['files.stat'], decision: 'prompt' as const }];
    expect(asks([], stat, { execPolicy })).toBe(true);
  });

  test("apply the operator's rules, the session's rules and its approval to file operations", () => {
    const { decide } = rulesOf(['rules: [{ pattern: [files.write, /etc], decision: forbid }]']);
    const about = (operation: FileOperation, spec: SessionSpec = {}) =>
      decide({ ...question({ spec }), payload: { type: 'file', operation } });
    const write = (path: string): FileOperation => ({
      ...{ name: 'write', path, offset: 0, last: true, transfer: 't', data: '' },
    });
    expect(about(write('/tmp/../etc/passwd'))).toEqual({
      type: 'forbid',
      reason: 'The rule `files.write /etc` forbids `files.write /etc/passwd`.',
    });
    expect(about({ name: 'rename', path: '/tmp/a', to: '/etc/a' }).type).toBe('forbid');
    expect(about(write('/tmp/a')).type).toBe('allow');
    expect(about(write('/tmp/a'), { approval: 'unless-trusted' }).type).toBe('ask');
    const execPolicy = [{ pattern: ['files.write', '/tmp'], decision: 'allow' as const }];
    expect(about(write('/tmp/a'), { approval: 'unless-trusted', execPolicy }).type).toBe('allow');
    expect(about({ name: 'stat', path: '/tmp' }, { approval: 'unless-trusted' }).type).toBe('allow');
  });

  test('let a command leave its sandbox only on request and by an answer or rule', () => {
    const { decide } = rulesOf(['rules: [{ pattern: [make], decision: allow }]']);
    const escalate = { justification: 'it needs the network' };
    expect(decide(question({ script: 'make' }))).toEqual({ type: 'allow' });
    expect(decide(question({ script: 'make', escalate }))).toEqual({ type: 'allow', outside: true });
    expect(decide(question({ script: 'ls', escalate, spec: { approval: 'on-request' } }))).toMatchObject({
      type: 'ask',
      question: { outside: true, justification: 'it needs the network' },
    });
    expect(decide(question({ script: 'ls', escalate }))).toMatchObject({ type: 'forbid' });
  });

  test('always ask about a second attempt, even if a rule allows the command', () => {
    const { decide } = rulesOf(['rules: [{ pattern: [make], decision: allow }]']);
    const attempt = { number: 2, exitCode: 1, output: '' } as const;
    expect(decide(question({ script: 'make', attempt, spec: { approval: 'on-failure' } }))).toMatchObject({
      type: 'ask',
      question: { outside: true },
    });
  });

  test('report the rules of a file with reportOnly, without applying them (RULES-3)', () => {
    const { decide, reported } = rulesOf([`${FORBID_PUSH}\nreportOnly: true`, PROMPT_FETCH]);
    const asked = question({ script: 'git push' });
    expect(decide(asked)).toEqual({ type: 'allow' });
    decide(question({ script: 'git fetch' }));
    expect(reported).toEqual([{ input: asked, requirement: 'forbidden', rules: ['git push'] }]);
  });

  test('allow tool calls and terminals while all rules only report', () => {
    const { decideTool, refuseTerminal } = rulesOf([`${FORBID_PUSH}\nreportOnly: true`]);
    expect([decideTool('add'), refuseTerminal(sessionSpecSchema.parse({}))]).toEqual([{ type: 'allow' }, undefined]);
  });
});
