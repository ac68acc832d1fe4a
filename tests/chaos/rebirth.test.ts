import type { Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: every new shell has the session's variables and directory, and has run the startup commands, before it runs
// a submitted command. (If they ran only once, the first timeout would leave a session without its virtualenv.)

let stack: TestFleet;
let inspect: FleetInspector;
beforeAll(async () => {
  ({ stack, inspect } = await startInspectedFleet());
});
afterAll(() => endInspectedFleet(stack, inspect));

const spec = {
  env: { GIVEN: 'session' },
  cwd: '/usr',
  startupCommands: ['from=startup', 'activate() { echo "active in $PWD with $GIVEN"; }', 'cd /tmp'],
  limits: { memoryBytes: 64 << 20 },
};
const prepared = 'active in /tmp with session startup\n';
const look = 'activate | tr "\\n" " "; echo "$from"';

async function removeContainer({ id }: Session): Promise<void> {
  await (await inspect.container(id)).remove({ force: true });
}

async function timeOutFatally(session: Session): Promise<void> {
  const ignoresTheStop = "trap '' URG; while :; do :; done";
  expect(await session.run(ignoresTheStop, { timeoutMs: 300, killGraceMs: 300 })).toMatchObject({
    outcome: 'timeout',
    reason: 'wall',
    shell: { state: 'lost', epoch: 2 },
  });
}

/** Ways to lose the first shell of a session. */
const WAYS: [string, (session: Session) => Promise<unknown>][] = [
  ['restart', (session) => session.restart()],
  ['a timeout that the shell does not survive', timeOutFatally],
  ['set -n, after which a shell runs nothing', (session) => session.run('set -n')],
  ['kill -9 of the shell by its command', (session) => session.run('kill -9 $$')],
  ['exec of another program', (session) => session.run('exec true')],
  ['kill -9 of the shell from the background', (session) => session.run('shell=$$; (sleep 0.2; kill -9 $shell) & :')],
  ['a kill of all processes in the sandbox', (session) => session.run("sh -c 'kill -9 -1'")],
  [
    'an end for lack of memory',
    (session) => session.run('exec python3 -c "b = bytearray(1 << 30)"', { timeoutMs: 20_000 }),
  ],
  ['removal of its container', removeContainer],
];

// The tests run at the same time, because they mostly wait. Each has sessions of its own.
describe.concurrent('a new shell', () => {
  // S1-26, S1-43
  test.each(WAYS)('has run the startup commands after %s', async (what, lose) => {
    const session = await stack.fleet.session(what.replaceAll(/[^a-z0-9]+/gi, '-'), spec);
    expect(await session.run(look)).toMatchObject({ outcome: 'success', stdout: prepared });
    await session.run('unset from; cd /; export GIVEN=changed; unset -f activate');
    await lose(session);
    const next = await until(
      () => session.run(look),
      // `look` may be running when its shell is killed.
      ({ shell, outcome }) => shell.epoch === 2 && outcome === 'success',
    );
    expect(next).toMatchObject({ outcome: 'success', stdout: prepared });
    expect(await session.run('echo "$from"')).toMatchObject({
      stdout: 'startup\n',
      shell: { state: 'kept', epoch: 2 },
    });
    await session.close();
  });

  test('has run the startup commands after idleness', async () => {
    const session = await stack.fleet.session('idle', { ...spec, idleTimeoutMs: 300 });
    await session.run('unset from');
    await until(
      () => session.info(),
      ({ state }) => state === 'lost',
    );
    expect(await session.run(look)).toMatchObject({ stdout: prepared, shell: { state: 'lost', epoch: 2 } });
  });

  test('has run the startup commands on another host when the first is lost', async () => {
    await using two = await startFleet({ workers: 2, slots: 1 });
    const session = await two.fleet.session('moves', { ...spec, onHostLoss: 'recreate', hostGraceMs: 0 });
    const first = await session.run(look);
    await two.workers.find(({ hostId }) => hostId === first.hostId)?.kill();
    const next = await session.run(look);
    expect(next.hostId).not.toBe(first.hostId);
    expect(next).toMatchObject({ stdout: prepared, shell: { state: 'lost', epoch: 2 } });
  });

  // S1-40, S1-41, S1-60
  test.each([
    ['fails', 'false', "Startup command 'false' failed with exit code 1."],
    ['replaces the shell', 'exec true', "Startup command 'exec true' replaced the shell: "],
  ])('is not used when a startup command %s; the next command starts over', async (what, command, message) => {
    const id = `partial-${what.replaceAll(' ', '-')}`;
    const startupCommands = ['from=startup', `[ -e /workspace/ok ] || ${command}`];
    const session = await stack.fleet.session(id, { startupCommands });
    const text = message.replace(`'${command}'`, `'${startupCommands[1]}'`);
    for (const _again of [1, 2]) {
      expect((await session.run('echo "[$from]"')).error).toMatchObject({
        code: 'SESSION_START_FAILED',
        message: expect.stringContaining(text),
      });
    }
    expect(await inspect.containers(id)).toEqual([]);
  });
});

describe('a new shell after a time without a worker', () => {
  test('has run the startup commands after worker and container died together', async () => {
    const session = await stack.fleet.session('both-died', spec);
    await session.run('unset from');
    await stack.workers[0]?.kill();
    await removeContainer(session);
    await stack.workers[0]?.start();
    expect(await session.run(look)).toMatchObject({ stdout: prepared, shell: { state: 'lost', epoch: 2 } });
  });

  test('is prepared before the next command if the old shell died without a worker', async () => {
    const session = await stack.fleet.session('died-alone', spec);
    await session.run('unset from; shell=$$; (sleep 0.5; kill -9 $shell; touch /tmp/killed) & :');
    await stack.workers[0]?.kill();
    await inspect.untilFile(await inspect.container(session.id), '/tmp/killed');
    await stack.workers[0]?.start();
    expect(await session.run(look)).toMatchObject({
      stdout: prepared,
      shell: { state: 'lost', epoch: 2, reason: expect.stringContaining('away') },
    });
  });
});
