// Uses `shellfleet approvals watch` at a real terminal, as a person does.
import { Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { LocalTerminal } from '../support/local-terminal.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

let own: OwnRedis;
let fleet: Fleet;
let worker: FakeShellWorker;
const of = newFleet();
let place: { redisUrl: string; namespace: string; sealKey: string };
beforeAll(async () => {
  own = await startOwnRedis();
  place = { redisUrl: own.url, ...of };
  worker = await startFakeShellWorker({ ...place, id: 'h1' });
  fleet = await Fleet.connect({ redisUrl: own.url, namespace: of.namespace, sealKeys: [of.sealKey] });
});
afterAll(async () => {
  await fleet?.close();
  await worker?.worker.close('end', 1_000);
  await own?.[Symbol.asyncDispose]();
});

const asked = (script: string) =>
  until(
    async () => (await fleet.approvals.list()).find((question) => question.script === script),
    (found) => found !== undefined,
  );

describe('`shellfleet approvals` at a terminal', () => {
  test('shows questions and the answers of others, and sends answers of the person', async () => {
    await using local = LocalTerminal.start(place, ['approvals', 'watch', '--by', 'ada']);
    await local.sees('No question of the tenant default waits.');
    const session = await fleet.session('s1');

    const first = await session.submit('ask one\nask \u202etwo');
    await local.sees('> #1');
    local.type('\r');
    await local.sees('  | ask \\u202etwo');
    await local.sees('a: let it run');
    local.type('p');
    await local.sees('until it is revoked: ask');
    local.type('n');
    await local.sees('a: let it run');
    local.type('a');
    await local.sees('y: yes');
    local.type('y');
    await local.sees('Approved.');
    expect(await first.result()).toMatchObject({ outcome: 'success' });

    const second = await session.submit('ask again');
    const behind = await session.submit('true');
    await local.sees('#2');
    // The person names the question by its number.
    local.type('2\r');
    await local.sees('  | ask again');
    await local.resize(20, 50);
    await local.sees('d: deny');
    local.type('x');
    await local.sees('cancel what waits behind it. Why');
    local.type('not today\r');
    await local.sees('Denied.');
    expect(await second.result()).toMatchObject({ outcome: 'denial', stderr: 'Denied: ada denied it: not today\n' });
    expect(await behind.result()).toMatchObject({ outcome: 'cancellation' });

    const third = await session.submit('ask others');
    const question = await asked('ask others');
    await local.sees('#3');
    local.type('3\r');
    await local.sees('  | ask others');
    local.type('a');
    await local.sees('y: yes');
    await fleet.approvals.deny(question?.id ?? '', undefined, { answeredBy: 'bob' });
    await local.sees('Question #3 was denied by bob.');
    local.type('y');
    expect(await third.result()).toMatchObject({ outcome: 'denial', stderr: 'Denied: bob denied it\n' });
    local.type('\x03');
    const { exitCode, before, after } = await local.left();
    expect([exitCode, after]).toEqual([0, before]);
    expect(local.shown).toContain('#1 was approved by ada');
    expect(local.shown.slice(local.shown.lastIndexOf('Question #3'))).toContain('\u001b[?25h\u001b[?1049l\r');
  });

  test('reports a fleet without a host, and restores the terminal at SIGTERM', async () => {
    await using local = LocalTerminal.start({ ...place, ...newFleet() }, ['approvals', 'watch']);
    await local.sees('! No host is up: answers wait for one.');
    await local.signal('SIGTERM');
    const { exitCode, before, after } = await local.left();
    expect([exitCode, after]).toEqual([143, before]);
  });

  test('explains why an answer cannot be given, and names the next step', async () => {
    const cli = new FleetCli(place);
    const session = await fleet.session('s2');
    const command = await session.submit('ask plainly');
    const id = (await asked('ask plainly'))?.id ?? '';
    const unknown = `${'a'.repeat(20)}.${'b'.repeat(12)}`;
    const runs: [string[], number, string][] = [
      [
        ['approve', 'nonsense'],
        2,
        'The answer is not valid: id: must be the id of a question, as `approvals ls` shows it',
      ],
      [
        ['approve', unknown],
        125,
        `The question ${unknown} does not wait in the tenant default: it has ended, or was never`,
      ],
      [['deny', id, '--tenant', 'other'], 125, `The question ${id} does not wait in the tenant other`],
      [['revoke', id], 125, `No approval of the question ${id} holds in the tenant default`],
      [['approve', id, '--redis-url', 'redis://127.0.0.1:1'], 125, 'Redis'],
    ];
    const texts = await Promise.all(runs.map(([words]) => cli.text(['approvals', ...words])));
    expect(texts.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
      runs.map(([, exitCode, stderr]) => ({ exitCode, stderr: expect.stringContaining(stderr) })),
    );
    expect((await cli.text(['approvals', 'ls', '--tenant', 'other'])).stderr).toBe(
      'shellfleet: No question waits in the tenant other.\n',
    );
    await fleet.approvals.deny(id, undefined, { answeredBy: 'bob' });
    expect((await cli.text(['approvals', 'approve', id])).stderr).toBe(
      `shellfleet: The question ${id} does not wait for an answer any more: it was denied by bob. List those that wait with \`shellfleet approvals ls\`. (APPROVAL_NOT_FOUND)\n`,
    );
    await command.result();
  });
});
