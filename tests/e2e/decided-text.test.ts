import type { Session, SessionSpec } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// The directory, the variables and the shell change the meaning of a text that rules decide about.

let stack: TestFleet;
let ids = 0;
beforeAll(async () => {
  stack = await startFleet();
});
afterAll(() => stack?.end());

const open = (spec: SessionSpec = {}) =>
  stack.fleet.session(`decided-${++ids}`, { approval: 'unless-trusted', ...spec });
const asked = async ({ id }: Session) =>
  (
    await until(
      () => stack.fleet.approvals.list({ sessionId: id }),
      ({ length }) => length > 0,
    )
  )[0]!;

describe('a question about a command', () => {
  // fault 103
  test('covers its directory: in another directory the same words ask again', async () => {
    const session = await open({ execPolicy: [{ pattern: ['files.write'], decision: 'allow' }] });
    for (const path of ['/workspace/tmp/data/x', '/workspace/data/x']) await session.files.write(path, 'text');
    const first = await session.submit('rm -r data', { cwd: '/workspace/tmp' });
    const fresh = await asked(session);
    expect(fresh).toMatchObject({ script: 'rm -r data', cwd: '/workspace/tmp' });
    await stack.fleet.approvals.deny(fresh.id);
    await first.result();
    expect(await session.run('cd tmp')).toMatchObject({ outcome: 'success' });
    const second = await session.submit('rm -r data');
    const inShell = await asked(session);
    expect(inShell).toMatchObject({ script: 'rm -r data', cwd: '/workspace/tmp' });
    await stack.fleet.approvals.approve(inShell.id, { scope: 'session' });
    expect(await second.result()).toMatchObject({ outcome: 'success' });
    // The approval still holds in its own directory.
    expect(await session.run('rm -r data')).toMatchObject({ outcome: 'failure' });
    expect(await session.run('cd /workspace')).toMatchObject({ outcome: 'success' });
    const elsewhere = await session.submit('rm -r data');
    const again = await asked(session);
    expect(again).toMatchObject({ script: 'rm -r data', cwd: '/workspace' });
    expect(again.id.slice(0, 20)).not.toBe(inShell.id.slice(0, 20));
    await stack.fleet.approvals.deny(again.id);
    expect(await elsewhere.result()).toMatchObject({ outcome: 'denial' });
    expect(await session.files.readText('/workspace/data/x')).toBe('text');
    await session.close();
  });

  // fault 103
  test('has an answer for this command alone if the command’s directory was not known', async () => {
    const session = await open({ startupCommands: ['cd /tmp'] });
    const script = 'touch made-here; pwd';
    const run = async () => {
      const command = await session.submit(script);
      const question = await asked(session);
      await stack.fleet.approvals.approve(question.id, { scope: 'session' });
      return { question, result: await command.result() };
    };
    const fresh = await run();
    expect(fresh.question.cwdUnknown).toBe(
      'where its startup commands leave a fresh shell, which begins in /workspace',
    );
    expect(fresh.result).toMatchObject({ outcome: 'success', stdout: '/tmp\n' });
    const known = await run();
    expect(known.question).toMatchObject({ cwd: '/tmp' });
    expect(await session.run(script)).toMatchObject({ outcome: 'success', stdout: '/tmp\n' });
    await session.close();
  });

  // fault 105
  test('names the session’s variables, and is asked for any command when PATH is changed', async () => {
    const session = await open({ env: { PATH: '/workspace/bin:/usr/bin:/bin' }, secrets: { TOKEN: 'correct-horse' } });
    const command = await session.submit('ls', { env: { OWN: '1' } });
    const question = await asked(session);
    expect(question).toMatchObject({ script: 'ls', env: ['OWN', 'PATH', 'TOKEN'], cwd: '/workspace' });
    await stack.fleet.approvals.deny(question.id);
    expect(await command.result()).toMatchObject({ outcome: 'denial', stdout: '' });
    await session.close();
  });

  // fault 113
  test.each([
    ['a script in the shell of a spec', ['/bin/bash', '-c', 'id > /workspace/ran; exec bash "$@"', 'x']],
    ['a shell that reads files of the session', ['/bin/bash', '--login']],
  ])('is asked about %s before it runs, and again at a restart', async (_what, shell) => {
    const session = await open({ shell });
    const reads = session.submit('true');
    const question = await asked(session);
    expect(question.reason).toContain('is not plainly bash, dash, ash or sh of the system');
    await stack.fleet.approvals.approve(question.id);
    expect(await (await reads).result()).toMatchObject({ outcome: 'success' });
    const restarted = expect(session.restart()).rejects.toMatchObject({ code: 'RESTART_DENIED' });
    const about = await asked(session);
    expect(about).toMatchObject({ reason: question.reason, script: '# a fresh shell in place of the present one' });
    await stack.fleet.approvals.deny(about.id);
    await restarted;
    await session.close();
    const denied = await stack.fleet.session(`decided-${++ids}`, { approval: 'unless-trusted', shell });
    const never = await denied.submit('true');
    await stack.fleet.approvals.deny((await asked(denied)).id);
    expect(await never.result()).toMatchObject({ outcome: 'denial' });
    await denied.close();
  });
});
