import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

let stack: TestFleet;
let cli: FleetCli;
beforeAll(async () => {
  stack = await startFleet({ env: { SHELLFLEET_ALLOW_UNREDACTED: '1' } });
  cli = new FleetCli(stack);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const saysOf = (count: string, kinds: string) =>
  `shellfleet: ${count} of well-known formats were replaced in the output (${kinds}). A session with --keep-formats shows them, where its host allows it.\n`;

// The key is composed here, so that no scanner reports this file as a leak.
const KEY = `AKIA${'IOSFODNN7EXAMPLE'}`;
const URL_WITH_PASSWORD = `postgres://u:${'hunter22'}@db/x`;
const MAKE = `git init -q repo && cd repo && git config user.email a@b && git config user.name a && echo first > f && git add f && git commit -qm a
printf 'key = "%s"\\nurl = "%s"\\n' ${KEY} ${URL_WITH_PASSWORD} > f; git diff`;

describe('a session that keeps formats', () => {
  test('receives a patch with fixtures of well-known formats unchanged, and it applies', async () => {
    const session = await stack.fleet.session('patch', { redactFormats: false });
    const made = await session.run(MAKE);
    expect(made).toMatchObject({ outcome: 'success', redactions: {} });
    expect(made.stdout).toContain(KEY);
    expect(made.stdout).toContain(URL_WITH_PASSWORD);
    const applied = await session.run('git checkout -q f && git apply - && cat f', { stdin: made.stdout });
    expect(applied).toMatchObject({ outcome: 'success', stdout: `key = "${KEY}"\nurl = "${URL_WITH_PASSWORD}"\n` });
    await session.close();
  });

  test('still replaces its secrets and applies its own rules', async () => {
    const session = await stack.fleet.session('rules', {
      redactFormats: false,
      secrets: { TOKEN: 'a-secret-of-its-own' },
      redaction: [{ type: 'email', strategy: 'redact' }],
    });
    expect(await session.run(`echo "$TOKEN ${KEY} someone@example.org"`)).toMatchObject({
      stdout: `[REDACTED_SECRET] ${KEY} [REDACTED_EMAIL]\n`,
      redactions: { secret: 1, email: 1 },
    });
    await session.close();
  });
});

describe('a session with default redaction', () => {
  test('replaces tokens of well-known formats', async () => {
    const session = await stack.fleet.session('usual');
    expect((await session.run(MAKE)).stdout).not.toContain(KEY);
    await session.close();
  });

  test.each([
    ['exec', ['exec', 'told', '--']],
    ['run', ['run', '--']],
  ])('reports replaced formats on stderr of %s, and nothing with --keep-formats', async (verb, args) => {
    expect(await cli.text([...args, `echo ${KEY} ${KEY}`])).toEqual({
      exitCode: 0,
      stdout: '[REDACTED_AWS_ACCESS_KEY] [REDACTED_AWS_ACCESS_KEY]\n',
      stderr: saysOf('2 tokens', 'aws_access_key 2'),
    });
    const kept = args.map((word) => (word === 'told' ? 'kept' : word)).toSpliced(-1, 0, '--keep-formats');
    expect({ verb, ...(await cli.text([...kept, `echo ${KEY}`])) }).toEqual({
      ...{ verb, exitCode: 0, stdout: `${KEY}\n`, stderr: '' },
    });
  });

  test('reports replaced formats once in logs, for a command and for a session', async () => {
    const session = await stack.fleet.session('logged');
    const { commandId } = await session.run(`echo ${KEY}; echo ${URL_WITH_PASSWORD}`);
    await session.run(`echo ${KEY}`);
    const unread = await session.run('echo nothing to hide');
    const stderrOf = async (...args: string[]) => (await cli.text(['logs', ...args])).stderr;
    const of = await cli.text(['logs', commandId]);
    expect([of.exitCode, of.stderr]).toEqual([0, saysOf('2 tokens', 'aws_access_key 1, url_password 1')]);
    expect(await stderrOf(commandId, '--tail', '1')).toBe(of.stderr);
    expect(await stderrOf(commandId, '--follow', '--json')).toBe(of.stderr);
    const ofAll = saysOf('3 tokens', 'aws_access_key 2, url_password 1');
    expect(await stderrOf('logged')).toBe(ofAll);
    expect(await stderrOf('logged', '--tail', '1')).toBe(ofAll);
    expect(await stderrOf(unread.commandId)).toBe('');
    await session.close();
  });
});
