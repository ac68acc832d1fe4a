import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Command, Session } from '@shellfleet/client';
import { answerHeld, type HeldDecision } from '@shellfleet/mailbox';
import { newResult, sessionJobId, sessionKeys } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isRoot } from '../support/host-leftovers.ts';
import { type FleetInspector, inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet, type TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// The admit step, with a worker whose trial rule holds, admits or denies by the first line of a script. The worker can
// kill itself between the parts of the step.

const program = fileURLToPath(new URL('../fixtures/worker-with-trial-rule.ts', import.meta.url));
const UID = 4_717;
const POINTS = ['asked', 'decided', 'sent', 'answered'] as const;
const RELEASE: HeldDecision = { type: 'release' };
const DENY: HeldDecision = { type: 'deny', result: newResult({ outcome: 'denial', reason: 'approver' }) };

describe.runIf(isRoot)('the decision about an entry', () => {
  let stack: TestFleet;
  let worker: TestWorker;
  let inspect: FleetInspector;
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sf-trial-'));
    stack = await startFleet({
      slots: 1,
      program,
      env: {
        DOCKER_HOST: 'unix:///nonexistent/docker.sock',
        SHELLFLEET_POLICIES: 'host',
        SHELLFLEET_HOST_USER: String(UID),
        TRIAL_DIRECTORY: directory,
      },
    });
    worker = stack.workers[0] as TestWorker;
    inspect = inspectFleet(stack);
  });
  afterAll(async () => {
    await stack[Symbol.asyncDispose]();
    await inspect[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  const open = (id: string) => stack.fleet.session(id, { policy: 'host' });
  const keysOf = (session: Session) => sessionKeys(stack.keyspace, 'default', session.id);
  const entryOf = (command: Command) => command.id.slice(command.sessionId.length + 1);

  /** Returns the types of one command's events, in order, without output. */
  async function typesOf(command: Command): Promise<string[]> {
    const events = await inspect.events(command.sessionId);
    const own = events.filter(({ entryId, type }) => entryId === entryOf(command) && type !== 'command.output');
    return own.map(({ type }) => type);
  }

  const untilHeld = (command: Command) =>
    until(
      () => typesOf(command),
      (types) => types.includes('approval.requested'),
    );

  const untilReleased = (session: Session) =>
    until(
      () => session.info(),
      ({ hostId }) => hostId === null,
    );

  async function restartAfterDeath(): Promise<void> {
    await until(
      () => isGone(worker.pid),
      (gone) => gone,
    );
    await worker.start();
  }

  /** Answers the question about a command: from then on the trial rule admits it or denies it. */
  async function answer(session: Session, command: Command, how: HeldDecision) {
    if (how.type === 'release') await writeFile(join(directory, `${entryOf(command)}.granted`), '');
    return answerHeld(inspect.redis, keysOf(session), entryOf(command), how, {});
  }

  async function expectWhole(session: Session, command: Command): Promise<void> {
    expect(await inspect.broken(session.id, [command.id])).toEqual([]);
  }

  describe.each(POINTS)('kill -9 of the worker when the step is %s', (point) => {
    test('runs an admitted entry once', async () => {
      const session = await open(`admit-${point}`);
      const command = await session.submit(`# trial admit ${point}\necho ran | tee -a log`);
      await restartAfterDeath();
      expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'ran\n' });
      expect((await session.run('cat log')).stdout).toBe('ran\n');
      expect(await typesOf(command)).toEqual(['command.accepted', 'command.started', 'command.completed']);
      await expectWhole(session, command);
      await session.close();
    });

    test('ends a denied entry once, and it never reaches the shell', async () => {
      const session = await open(`deny-${point}`);
      const command = await session.submit(`# trial deny ${point}\necho ran > log`);
      await restartAfterDeath();
      expect(await command.result()).toMatchObject({ outcome: 'denial', reason: 'rules', exitCode: null });
      expect((await session.run('cat log')).stderr).toContain('No such file');
      expect(await typesOf(command)).toEqual(['command.accepted', 'command.completed']);
      await expectWhole(session, command);
      await session.close();
    });

    test('records a held entry once; an answer starts the entry, or ends it unstarted', async () => {
      const session = await open(`hold-${point}`);
      const isReleased = point === 'decided' || point === 'answered';
      const command = await session.submit(`# trial hold ${point}\necho ran > log; echo ran`);
      await restartAfterDeath();
      await untilHeld(command);
      await untilReleased(session);
      expect(await answer(session, command, isReleased ? RELEASE : DENY)).toMatchObject({ needsJob: isReleased });
      expect(await answer(session, command, DENY)).toEqual({ type: 'not-held' });
      expect(await command.result()).toMatchObject(isReleased ? { outcome: 'success' } : { outcome: 'denial' });
      expect((await session.run('cat log')).stdout).toBe(isReleased ? 'ran\n' : '');
      expect(await typesOf(command)).toEqual([
        'command.accepted',
        'approval.requested',
        'approval.answered',
        ...(isReleased ? ['command.started'] : []),
        'command.completed',
      ]);
      await expectWhole(session, command);
      await session.close();
    });
  });

  test.each([
    ['released', RELEASE, 'success'],
    ['denied', DENY, 'denial'],
  ] as const)('ends an entry once when it is %s while the worker is dead', async (name, how, outcome) => {
    const session = await open(`dead-${name}`);
    const command = await session.submit('# trial hold never\necho ran');
    await untilHeld(command);
    await worker.kill();
    await answer(session, command, how);
    await worker.start();
    expect(await command.result()).toMatchObject({ outcome });
    await expectWhole(session, command);
    await session.close();
  });

  test('takes no slot for a session whose head is held, and upkeep adds no job', async () => {
    const session = await open('parked');
    const command = await session.submit('# trial hold never\necho ran');
    const behind = await session.submit('echo behind');
    await untilHeld(command);
    expect(await untilReleased(session)).toMatchObject({ state: 'queued', queuedCommands: 2 });
    const jobKeys = () => inspect.redis.keys(`*${stack.namespace}*:${sessionJobId('default', 'parked')}`);
    const other = await open('other');
    expect((await other.run('echo other')).stdout).toBe('other\n');
    await other.close();
    // The loop lasts for three rounds of upkeep.
    for (let index = 0; index < 60; index += 1) {
      expect(await jobKeys()).toEqual([]);
      await delay(100);
    }
    expect(await session.info()).toMatchObject({ hostId: null, queuedCommands: 2 });
    expect(await answer(session, command, RELEASE)).toEqual({ type: 'released', needsJob: true });
    expect((await command.result()).stdout).toBe('ran\n');
    expect((await behind.result()).stdout).toBe('behind\n');
    await expectWhole(session, behind);
    await session.close();
  });

  test('wakes the host of the session when a held entry is answered or cancelled', async () => {
    const session = await open('owned');
    expect((await session.run('kept=yes; echo first')).stdout).toBe('first\n');
    const held = await session.submit('# trial hold never\necho $kept');
    const next = await session.submit('# trial hold never\necho next');
    const last = await session.submit('echo last');
    await untilHeld(held);
    expect((await session.info()).hostId).toBe(worker.hostId);
    expect(await answer(session, held, RELEASE)).toEqual({ type: 'released', needsJob: false });
    expect((await held.result()).stdout).toBe('yes\n');
    await untilHeld(next);
    await next.cancel();
    expect(await next.result()).toMatchObject({ outcome: 'cancellation' });
    expect((await last.result()).stdout).toBe('last\n');
    await expectWhole(session, last);
    await session.close();
  });
});

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
