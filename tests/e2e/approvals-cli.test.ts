import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// A person at a terminal answers what agents ask.

const spec = { approval: 'unless-trusted' as const };

let it: TestFleet;
let cli: FleetCli;
beforeAll(async () => {
  it = await startFleet();
  cli = new FleetCli(it);
});
afterAll(() => it?.end());

async function onlyQuestion(script: string) {
  return until(
    async () => (await it.fleet.approvals.list()).find((question) => question.script === script),
    (found) => found !== undefined,
    30_000,
  );
}

describe('approvals on the command line', () => {
  test('shows a person what will run, runs it when approved, and nothing when denied', async () => {
    const session = await it.fleet.session('asks', spec);
    const watch = cli.start(['approvals', 'watch']);
    const approved = session.run('touch approved; ls');
    const question = await onlyQuestion('touch approved; ls');
    await until(
      () => watch.output().stdout.toString(),
      (shown) => shown.includes('  | touch approved; ls') && shown.includes(`approvals approve ${question?.id}`),
      30_000,
    );
    expect(await cli.run(['approvals', 'approve', question?.id ?? '', '--by', 'a person'])).toMatchObject({
      exitCode: 0,
    });
    expect(await approved).toMatchObject({ outcome: 'success', stdout: 'approved\n' });
    await until(
      () => watch.output().stdout.toString(),
      (shown) => /approved +by a person/.test(shown),
      30_000,
    );

    const refused = session.run('touch refused');
    const second = await onlyQuestion('touch refused');
    expect(await cli.run(['approvals', 'deny', second?.id ?? '', '--reason', 'not now'])).toMatchObject({
      exitCode: 0,
    });
    expect(await refused).toMatchObject({
      outcome: 'denial',
      reason: 'approver',
      stderr: expect.stringContaining('not now'),
    });
    watch.child.kill('SIGINT');
    await watch.end;
  });

  test('tells the caller of exec that the command waits, and why it was denied', async () => {
    const { end, output } = cli.start(['exec', 'told', '--approval', 'unless-trusted', '--', 'touch denied']);
    const { id, commandId } = await onlyQuestion('touch denied').then((question) => question!);
    const waits = `shellfleet: ${commandId} waits for an approval; \`shellfleet approvals watch\` shows why, and how to answer.\n`;
    await until(
      () => output().stderr,
      (shown) => shown === waits,
    );
    await cli.run(['approvals', 'deny', id, '--reason', 'not now', '--by', 'a person']);
    expect(await end).toMatchObject({
      exitCode: 126,
      stderr: `${waits}shellfleet: Denied: a person denied it: not now\n`,
    });
    // The denial leaves the session open, and its approval mode unchanged.
    expect(await it.fleet.session('told', spec)).toMatchObject({ id: 'told' });
    const never = await cli.text(['exec', 'never', '--approval', 'never', '--', 'rm -rf /tmp/x']);
    expect(never).toEqual({
      exitCode: 126,
      stdout: '',
      stderr: 'shellfleet: Denied: `rm -rf /tmp/x` is dangerous, and nothing may be asked.\n',
    });
  });

  test('refuses an answer to a question that no longer waits, with a reason', async () => {
    expect(await cli.run(['approvals', 'approve', 'gone'])).toMatchObject({ exitCode: 2 });
  });
});
