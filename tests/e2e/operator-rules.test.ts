import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// One host whose operator has rules. Each test begins with the rules below.

const RULES = `
rules:
  - { pattern: [git, push], decision: forbid, justification: Only the release job pushes. }
  - { pattern: [git, fetch], decision: prompt }
  - { pattern: [echo], decision: allow }
`;
const directory = mkdtempSync(join(tmpdir(), 'sf-rules-'));
const rules = join(directory, 'rules.yaml');
const config = join(directory, 'config.yaml');
let stack: TestFleet;
let ids = 0;
const nextId = () => `ruled-${++ids}`;

beforeAll(async () => {
  writeFileSync(rules, RULES);
  writeFileSync(config, `rules: [${rules}]\n`);
  stack = await startFleet({ env: { SHELLFLEET_CONFIG: config } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});
beforeEach(() => change(RULES));

const logged = (text: string) => stack.workers[0]?.log.split(text).length ?? 0;

/** Resolves when the host has read the file. */
async function change(text: string, how: 'rules.reloaded' | 'rules.reload-failed' = 'rules.reloaded'): Promise<void> {
  if (text === current) return;
  const before = logged(how);
  current = text;
  writeFileSync(rules, text);
  stack.workers[0]?.signal('SIGHUP');
  await until(
    () => logged(how),
    (count) => count > before,
  );
}
let current = RULES;

const denied = (session: string, stderr: string) =>
  expectedResult(session, {
    ...{ outcome: 'denial', exitCode: null, reason: 'rules', stderr: `Denied: ${stderr}\n` },
    // The message of the denial is no output of a command.
    totals: { stdoutBytes: 0, stderrBytes: 0, stdoutLines: 0, stderrLines: 0 },
  });
const PUSH_DENIED = 'The rule `git push` forbids `git push`. Only the release job pushes.';

describe('operator rules', () => {
  test('deny, allow or ask as written, with the justification in the denial', async () => {
    const id = nextId();
    const session = await stack.fleet.session(id);
    expect(await session.run('echo allowed')).toEqual(expectedResult(id, { stdout: 'allowed\n' }));
    expect(await session.run('true && git push')).toEqual(denied(id, PUSH_DENIED));
    const asked = session.run('git fetch || true');
    const [question] = await until(
      () => stack.fleet.approvals.list(),
      ({ length }) => length === 1,
    );
    expect(question).toMatchObject({ sessionId: id, script: 'git fetch || true' });
    await stack.fleet.approvals.approve(question?.id ?? '');
    expect(await asked).toMatchObject({ outcome: 'success' });
  });

  test('apply to new and waiting commands once they have changed, and forbid wins', async () => {
    const session = await stack.fleet.session(nextId());
    await session.run('echo opened');
    const asked = session.run('git fetch');
    await until(
      () => stack.fleet.approvals.list(),
      ({ length }) => length === 1,
    );
    await change(RULES.replace('prompt', 'forbid'));
    expect(await asked).toMatchObject({
      outcome: 'denial',
      reason: 'rules',
      stderr: expect.stringContaining('forbids `git fetch`'),
    });
    await change(RULES.replace('push', 'pull'));
    expect(await session.run('git push')).toMatchObject({ outcome: 'failure' });
  });

  test('need one approval for a command and the startup commands of its new shell', async () => {
    const session = await stack.fleet.session(nextId(), { startupCommands: ['git fetch || echo began > /tmp/began'] });
    const asked = session.run('cat /tmp/began');
    const [question] = await until(
      () => stack.fleet.approvals.list({ sessionId: session.id }),
      ({ length }) => length === 1,
    );
    expect(question?.reason).toContain('The startup command `git fetch || echo began > /tmp/began` of its session: ');
    await stack.fleet.approvals.approve(question?.id ?? '');
    expect(await asked).toMatchObject({ outcome: 'success', stdout: 'began\n' });
    expect(await session.run('echo next')).toMatchObject({ outcome: 'success' });
  });

  test('list in a question the files that have changed since it was asked', async () => {
    const session = await stack.fleet.session(nextId());
    await session.run('echo opened');
    const asked = session.run('git fetch');
    const questions = () => stack.fleet.approvals.list({ sessionId: session.id });
    await until(questions, ([question]) => question !== undefined);
    await session.files.write('/tmp/hook', 'rm -rf /');
    const [question] = await questions();
    expect(question).toMatchObject({ script: 'git fetch', filesWritten: ['/tmp/hook'] });
    await stack.fleet.approvals.deny(question?.id ?? '');
    expect(await asked).toMatchObject({ outcome: 'denial', reason: 'approver' });
  });

  test('keep applying while the changed rules are invalid, and `hosts` reports what to fix', async () => {
    const session = await stack.fleet.session(nextId());
    await change('rules: [', 'rules.reload-failed');
    expect(await session.run('git push')).toMatchObject({ outcome: 'denial' });
    const warnings = async () => (await stack.fleet.hosts())[0]?.warnings;
    expect(await until(warnings, (found) => found !== undefined)).toEqual([
      expect.stringMatching(/^Rules were changed and are not valid, so those read at .* hold: .*rules\.yaml, line 1: /),
    ]);
    await change(`${RULES}# mended\n`);
    await until(warnings, (found) => found === undefined);
  });

  test('refuse nothing in report-only mode, and the log has what they would decide', async () => {
    await change(`${RULES}reportOnly: true\n`);
    const result = await (await stack.fleet.session(nextId())).run('git push');
    expect(result).toMatchObject({ outcome: 'failure' });
    const line = stack.workers[0]?.log.split('\n').find((text) => text.includes('rules.reported'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ decision: 'forbidden', rules: ['git push'] });
    expect(line).toContain(result.commandId);
  });

  test('apply to startup commands, and keep unreadable scripts from the shell', async () => {
    const forbidden = await stack.fleet.session(nextId(), { startupCommands: ['git push'] });
    expect(await forbidden.run('echo never')).toMatchObject({
      outcome: 'denial',
      stderr:
        'Denied: The startup command `git push` of its session: The rule `git push` forbids `git push`. Only the release job pushes.\n',
    });
    const session = await stack.fleet.session(nextId(), { approval: 'never' });
    await session.run('echo opened');
    expect(await session.run('cat', { stdin: ['echo ', 'hidden'] })).toMatchObject({
      outcome: 'denial',
      stderr: expect.stringContaining('allow: { unchecked: [stdin] }'),
    });
    await expect(session.attach()).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('allow: { unchecked: [terminals] }'),
    });
  });

  test('show in a replay of the audit what they would have decided on this host', async () => {
    const id = nextId();
    const session = await stack.fleet.session(id);
    for (const script of ['echo one', 'true && git status || true', 'git push']) await session.run(script);
    const others = join(directory, 'others.yaml');
    writeFileSync(others, 'rules: [{ pattern: [echo], decision: forbid }, { pattern: [git], decision: prompt }]');
    const cli = new FleetCli(stack);
    const replay = async () => {
      const env = { SHELLFLEET_STATE_DIR: stack.stateDirectory };
      const { stdout } = await cli.text(['rules', 'replay', '--since', '1h', '--json', '--file', others], { env });
      const lines = stdout.trim().split('\n');
      return lines.map((line) => JSON.parse(line)).filter((line) => line.session === id);
    };
    // The audit has a start within a second. The push was denied, so it did not start.
    expect(await until(replay, ({ length }) => length === 2)).toEqual(
      [
        { script: 'echo one', requirement: 'forbidden', reason: 'The rule `echo` forbids `echo one`.' },
        {
          script: 'true && git status || true',
          requirement: 'needs-approval',
          reason: 'The rule `git` asks about `git status`.',
        },
      ].map((one) => ({ ...one, type: 'command', at: expect.any(String), tenant: 'default', session: id })),
    );
  });

  test('keep a worker from starting when they are invalid, with the reason', async () => {
    const broken = join(directory, 'broken.yaml');
    writeFileSync(broken, `rules: [${broken}]\n`);
    await expect(startFleet({ env: { SHELLFLEET_CONFIG: broken } })).rejects.toThrow(
      `ended with 2 before it was ready:\nshellfleet: SHELLFLEET_CONFIG: rules: ${broken}, line 1: rules[0] must be a rule`,
    );
  });
});
