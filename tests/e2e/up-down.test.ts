import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROTOCOL_VERSION } from '@shellfleet/protocol';
import { checkoutRoot } from '@shellfleet/setup';
import { describe, expect, test } from 'vitest';
import { interrupt, living, newMachine, type UpMachine } from '../support/up-machine.ts';

const WAIT = { timeout: 30_000, interval: 100 };

// The tests run at the same time, because they mostly wait. Each has a machine of its own.
describe.concurrent('up and down', { timeout: 240_000 }, () => {
  test('`down` ends everything that `up --detach` has started', async () => {
    await using machine = await newMachine();
    await machine.run(['up', '--detach', '--slots', '2']);
    const pids = await machine.startedPids();
    expect(living(pids)).toEqual(pids);
    await machine.ask('exec', 'held', '--', 'sleep 100 & echo on');
    const { stderr } = await machine.run(['down']);
    expect(stderr).toContain('Ending the fleet, and with it: 1 open session, 0 running commands');
    expect(stderr).toContain('has ended');
    expect(stderr).toMatch(
      /Session images stay for the next `up`: shellfleet\/session:.*\. To remove them: docker rmi /,
    );
    expect(living(pids)).toEqual([]);
    expect(await readFile(join(machine.directory, 'up.log'), 'utf8')).toContain('with it: 1 open session, 0');
  });

  test('`up` adopts the shells of a killed supervisor, and `down` ends its leftover processes', async () => {
    await using machine = await newMachine();
    await machine.run(['up', '--detach', '--slots', '2']);
    await machine.ask('exec', 'kept', '--', 'X=5');
    const [supervisor = 0] = await machine.startedPids();
    const [api, { api: served }] = [await machine.apiPid(), await machine.connection()];
    process.kill(supervisor, 'SIGKILL');
    const { stdout: findings } = await machine.run(['doctor', '--json']).catch((error) => error);
    expect(findings).toContain(
      '"name":"fleet","state":"present","detail":"version 0.1.0 serves, but its supervisor is gone',
    );
    const again = await machine.run(['up', '--detach', '--slots', '2']);
    expect(again.stderr).toContain('taken over');
    expect((await machine.ask('exec', 'kept', '--', 'echo $X')).stdout).toBe('5\n');
    expect(living([api, await machine.apiPid()])).toEqual([await machine.apiPid()]);
    expect((await machine.connection()).api?.key).toBe(served?.key);

    const pids = await machine.startedPids();
    process.kill(pids[0] ?? 0, 'SIGKILL');
    await machine.run(['down']);
    expect(living(pids.slice(1))).toEqual([]);
  });

  test('`down` names a worker that `up` did not start and that keeps running', async ({ expect }) => {
    await using machine = await newMachine();
    await machine.run(['up', '--detach', '--slots', '1']);
    const byHand = machine.follow(['worker', '--slots', '1', '--host-id', 'by-hand']);
    await expect.poll(byHand.printed, WAIT).toContain('worker.started');
    const { stderr } = await machine.run(['down']);
    expect(stderr).toContain('because `up` did not start it: the worker of host by-hand.');
    // LOG-3.
    await expect.poll(byHand.printed, WAIT).toContain('host.beat-failed');
    expect(byHand.printed()).not.toMatch(/writeable[^\n]*\\n +at /);
    expect(byHand.child.exitCode).toBe(null);
  });

  test('`up` uses a fleet of the same version from another checkout, and leaves that running', async () => {
    await using machine = await newMachine();
    await machine.run(['up', '--detach']);
    const pids = await machine.startedPids();
    await machine.changeRecord({ build: '0.1.0 of the checkout /elsewhere' });
    const { stderr } = await machine.run(['up', '--detach', '--slots', '3']);
    expect(stderr).toContain('it is used as it is');
    expect(stderr).toMatch(
      /The running fleet keeps its own settings: --slots is \d+ there, not 3\. `shellfleet up --re/,
    );
    expect(stderr).toContain(`It is 0.1.0 of the checkout /elsewhere; this is 0.1.0 of the checkout ${checkoutRoot}`);
    expect(living(await machine.startedPids())).toEqual(pids);
  });
});

describe.concurrent('up while a fleet of another version runs', { timeout: 240_000 }, () => {
  test('refuses while that fleet’s workers are used, and --replace waits for running commands', async ({ expect }) => {
    await using machine = await newMachine();
    await machine.run(['up', '--detach', '--slots', '1']);
    const before = await machine.startedPids();
    // A session of another tenant counts too.
    const running = machine.follow([
      '--tenant',
      'other',
      'exec',
      'own',
      '--',
      'until [ -e /tmp/end ]; do sleep 0.1; done; echo whole',
    ]);
    await expect.poll(async () => (await machine.hosts())[0], WAIT).toMatchObject({ sessions: 1, running: 1 });
    // A worker that `up` did not start goes on, so its session does not count.
    const byHand = machine.follow(['worker', '--slots', '1', '--host-id', 'by-hand']);
    await machine.ask('exec', 'elsewhere', '--', 'true');
    await machine.changeRecord({ version: '0.0.1', build: '0.0.1 of the checkout /older' });

    const refused = await machine.run(['up', '--detach']).catch((error) => error);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^shellfleet: A fleet of another version runs: 0\.0\.1 of the checkout \/older, since .* \(this is 0\.1\.0\)\. In use: 1 open session, 1 running command\. Nothing was changed\.\nshellfleet: {3}Fix: up --replace /,
    );
    interrupt(byHand.child.pid ?? 0);
    await byHand.ended;

    const interrupted = machine.follow(['up', '--replace']);
    await expect.poll(interrupted.said, WAIT).toContain('1 open session, 1 running command.');
    await expect.poll(async () => (await machine.hosts())[0]?.state, WAIT).toBe('draining');
    interrupt(interrupted.child.pid ?? 0);
    expect(await interrupted.ended).toBe(130);
    expect(await machine.hosts()).toMatchObject([{ state: 'up', running: 1 }]);
    expect(living(before)).toEqual(before);

    const replacing = machine.follow(['up', '--detach', '--replace', '--slots', '2']);
    await expect.poll(replacing.said, WAIT).toContain('have 60 s to finish');
    await machine.ask('--tenant', 'other', 'cp', '/dev/null', 'own:/tmp/end');
    expect([await running.ended, running.printed()]).toEqual([0, 'whole\n']);
    expect(await replacing.ended).toBe(0);
    expect(replacing.said()).toContain('Ending it: 1 open session, 0 running commands.');
    expect(living(before)).toEqual([]);
    expect(await machine.hosts()).toMatchObject([{ state: 'up', slots: 2 }]);
  });

  test('replaces a fleet whose commands do not finish in time, and reports those', async ({ expect }) => {
    await using machine = await newMachine();
    await machine.run(['up', '--detach', '--slots', '2']);
    const before = await machine.startedPids();
    const running = machine.follow(['exec', 'long', '--', 'sleep 600']);
    await expect.poll(async () => (await machine.hosts())[0]?.running, WAIT).toBe(1);
    const { stderr } = await machine.run(['up', '--detach', '--replace', '--drain-timeout', '1s']);
    expect(stderr).toContain('1 command did not finish in time: cancelled with the fleet.');
    expect(living(before)).toEqual([]);
    expect(await running.ended).not.toBe(0);
    expect((await machine.ask('exec', 'fresh', '--', 'echo on')).stdout).toBe('on\n');
  });
});

describe.concurrent('up on a Redis with keys of another protocol version', { timeout: 180_000 }, () => {
  const OTHER = PROTOCOL_VERSION + 1;
  /** Options of a fleet that starts sooner, because it needs no engine. */
  const ON_HOST = ['--slots', '1', '--policies', 'host'];
  /** The environment of a checkout that is one version newer. */
  const newer = ({ env }: UpMachine) => ({
    ...env,
    NODE_OPTIONS: `--import ${new URL('../fixtures/newer-version.ts', import.meta.url).href}`,
    SHELLFLEET_TEST_NEWER: 'protocol',
  });

  test('refuses a running fleet; --replace drains it, reports, and removes its keys', async ({ expect }) => {
    await using machine = await newMachine({ SHELLFLEET_HOST_USER: 'nobody' });
    await machine.run(['up', '--detach', '--slots', '1']);
    const before = await machine.startedPids();
    const script = 'until [ -e /tmp/end ]; do sleep 0.1; done; echo whole';
    const running = machine.follow(['exec', 'own', '--', script]);
    await expect.poll(async () => (await machine.hosts())[0], WAIT).toMatchObject({ sessions: 1, running: 1 });

    const refused = await machine.run(['up', '--detach'], newer(machine)).catch((error) => error);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      new RegExp(
        `A fleet runs whose keys have version ${PROTOCOL_VERSION} of the protocol: .* \\(this process has version ${OTHER}\\)\\. In use: 1 open session, 1 running command\\. Nothing was changed\\.`,
      ),
    );
    const listed = await machine.run(['ps'], newer(machine)).catch((error) => error);
    expect(listed.stderr).toContain(
      `version ${PROTOCOL_VERSION} of the protocol, and this process has version ${OTHER}`,
    );
    expect(living(before)).toEqual(before);

    const replacing = machine.follow(['up', '--detach', '--replace', '--slots', '1'], newer(machine));
    await expect.poll(replacing.said, WAIT).toContain('have 60 s to finish');
    await machine.ask('cp', '/dev/null', 'own:/tmp/end');
    expect([await running.ended, running.printed()]).toEqual([0, 'whole\n']);
    expect([await replacing.ended, replacing.said()]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(
          `Removing the keys of version ${PROTOCOL_VERSION} of the protocol in the namespace shellfleet: 2 sessions, [2-9] commands, \\d+ keys\\.`,
        ),
      ),
    ]);
    expect(living(before)).toEqual([]);
    const { stdout } = await machine.run(['exec', 'fresh', '--', 'echo on'], newer(machine));
    expect(stdout).toBe('on\n');
    const sessions = (await machine.run(['ps', '--all', '--json'], newer(machine))).stdout;
    expect(sessions).toContain('"id":"fresh"');
    expect(sessions).not.toContain('"id":"own"');
  });

  test('refuses keys of an ended fleet, and removes none without --replace', async () => {
    await using machine = await newMachine({ SHELLFLEET_HOST_USER: 'nobody' });
    await machine.run(['up', '--detach', ...ON_HOST], newer(machine));
    await machine.run(['exec', '--policy', 'host', 'left', '--', 'echo on'], newer(machine));
    await machine.run(['down'], newer(machine));
    const refused = await machine.run(['up', '--detach', ...ON_HOST]).catch((error) => error);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      new RegExp(
        `Redis has keys of version ${OTHER} of the protocol in the namespace shellfleet, and this process has version ${PROTOCOL_VERSION}: 2 sessions, [2-9] commands, \\d+ keys\\. Nothing was changed\\.`,
      ),
    );
    await machine.run(['up', '--detach', ...ON_HOST], newer(machine));
    expect((await machine.run(['ps', '--all', '--json'], newer(machine))).stdout).toContain('"id":"left"');
    await machine.run(['down'], newer(machine));
    const { stderr } = await machine.run(['up', '--detach', '--replace', ...ON_HOST]);
    expect(stderr).toContain(`Removing the keys of version ${OTHER} of the protocol`);
    expect((await machine.ask('exec', '--policy', 'host', 'again', '--', 'echo on')).stdout).toBe('on\n');
  });
});

describe.concurrent('up with taken slots', () => {
  test('succeeds, and reports that its first command waits', {
    timeout: 120_000,
  }, async () => {
    await using machine = await newMachine();
    await machine.run(['up', '--detach', '--slots', '1']);
    await machine.ask('exec', 'held', '--', 'X=5');
    const [supervisor = 0] = await machine.startedPids();
    process.kill(supervisor, 'SIGKILL');
    const { stderr } = await machine.run(['up', '--detach', '--slots', '1']);
    expect(stderr).toContain('The first command still waits: every slot is taken.');
    expect(stderr).toContain('The fleet is up, with 0 free slots.');
    expect((await machine.ask('exec', 'held', '--', 'echo $X')).stdout).toBe('5\n');
  });
});
