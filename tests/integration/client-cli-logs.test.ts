import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { runCli, startCli } from '../support/run-cli.ts';
import { untilFound } from '../support/until.ts';

// Every flag of `logs` has an effect or is refused.

let stage: ClientStage;
/** Id of the second of two commands in one session. It printed to both streams. */
let second: string;
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost();
  const session = await (await stage.connect()).session('told');
  await session.run("printf '1\\n2\\n'");
  const command = await session.submit("printf '3\\n4\\n5\\n'; sleep 0.05; printf 'err\\n' >&2; sleep 0.05; printf 6");
  await command.result();
  second = command.id;
});
afterAll(() => stage[Symbol.asyncDispose]());

const logs = async (...args: string[]) => {
  const { exitCode, stdout, stderr } = await runCli(stage, ['logs', ...args]);
  return { exitCode, stdout: stdout.toString(), stderr };
};

describe('the verb `logs`', () => {
  test('shows one stream of a session for --stream', async () => {
    expect(await logs('told', '--stream', 'stderr')).toEqual({ exitCode: 0, stdout: '', stderr: 'err\n' });
    expect(await logs('told', '--stream', 'stdout')).toEqual({ exitCode: 0, stdout: '1\n2\n3\n4\n5\n6', stderr: '' });
  });

  test('shows the last lines of both streams in stored order for --tail', async () => {
    expect(await logs(second, '--tail', '3')).toEqual({ exitCode: 0, stdout: '5\n6', stderr: 'err\n' });
    expect(await logs('told', '--tail', '6')).toEqual({ exitCode: 0, stdout: '2\n3\n4\n5\n6', stderr: 'err\n' });
    expect(await logs('told', '--tail', '2', '--stream', 'stdout')).toEqual({
      exitCode: 0,
      stdout: '5\n6',
      stderr: '',
    });
    const { stdout } = await logs(second, '--tail', '4', '--stream', 'stdout', '--json');
    expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({ text: '3\n4\n5\n', offset: 0 });
    const cut = await logs(second, '--tail', '2', '--stream', 'stdout', '--json');
    expect(JSON.parse(cut.stdout.split('\n')[0] ?? '')).toMatchObject({ text: '5\n', base64: 'NQo=', offset: 4 });
  });

  test('shows the last lines of a session and then new output for -f --tail', async () => {
    const session = await (await stage.connect()).session('live');
    const command = await session.submit("printf 'a\\nb\\nc\\n'; read go; echo d", { stdin: { open: true } });
    await command.output().next();
    const { output, end } = startCli(stage, ['logs', '-f', '--tail', '1', 'live']);
    await untilFound('the last line is shown', async () => output().stdout.toString() === 'c\n');
    await command.write('go\n');
    await untilFound('what follows is shown', async () => output().stdout.toString() === 'c\nd\n');
    await session.close();
    expect((await end).exitCode).toBe(0);
  });

  test.each([
    [['told', '--offset', '2'], 'logs has no --offset of a session: give the id of a command.'],
    [['told', '--length', '2'], 'logs has no --length of a session: give the id of a command.'],
    [['told', '--since', '1-1', '--length', '2'], 'logs has no --length together with --since.'],
    [['told', '--since', '1-1', '--tail', '2'], 'logs has no --tail together with --since.'],
    [['told', '--tail', '2', '--offset', '2'], 'logs has no --offset together with --tail.'],
  ])('refuses %j', async (args, message) => {
    expect(await logs(...args)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: `shellfleet: ${message} (COMMAND_INVALID)\n`,
    });
  });
});
