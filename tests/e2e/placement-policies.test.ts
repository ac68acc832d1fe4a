import type { SessionInfo } from '@shellfleet/client';
import { fleetKeys, sessionJobId, sessionKeys, sessionsQueue } from '@shellfleet/protocol';
import { Queue } from 'bullmq';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { classOf, sealedWithKey } from '../support/class-of.ts';
import { expectedResult } from '../support/expected-result.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { isRoot } from '../support/host-leftovers.ts';
import { type FleetInspector, inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Two hosts with different policies: h1 runs containers, in two slots; h2 has no engine and runs shells on the host
// itself.

const NO_HOST =
  "No live host offers the policy 'host'; they offer 'docker'. The operator of a host lists what it offers in SHELLFLEET_POLICIES.";
const HOST_ONLY = {
  DOCKER_HOST: 'unix:///nonexistent/docker.sock',
  SHELLFLEET_POLICIES: 'host',
  SHELLFLEET_HOST_USER: '4712',
};
const small = { limits: { memoryBytes: 64 * 2 ** 20 } };

describe.runIf(isRoot)('hosts with different policies', () => {
  let stack: TestFleet;
  let inspector: FleetInspector;
  beforeAll(async () => {
    stack = await startFleet({
      workers: 2,
      envs: [{ SHELLFLEET_POLICIES: 'docker', SHELLFLEET_SLOTS: '2' }, HOST_ONLY],
    });
    inspector = inspectFleet(stack);
  });
  afterAll(async () => {
    await inspector?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  });
  afterEach(async () => {
    // A test that failed may have left h2 under other settings.
    const { policies } = (await stack.fleet.hosts()).find(({ id }) => id === 'h2') ?? {};
    if (policies?.join() !== 'host') await restartHost();
    for await (const { id, state } of stack.fleet.sessions())
      if (state !== 'closed') await (await stack.fleet.session(id)).close();
  });

  /** Restarts h2 under other settings, or under its first ones. */
  const restartHost = async (env: Record<string, string> = HOST_ONLY) => {
    await worker().stop('SIGTERM');
    await worker().start(env);
  };
  const worker = () => {
    const [, second] = stack.workers;
    if (second === undefined) throw new Error('There is no second worker.');
    return second;
  };
  const infoOf = async (id: string): Promise<SessionInfo> => (await stack.fleet.session(id)).info();

  test('run each session on the host that offers its policy', async () => {
    const hosts = await Promise.all(
      [0, 1, 2, 3].map(async (n) => {
        const policy = n % 2 === 0 ? 'docker' : 'host';
        const session = await stack.fleet.session(`apart-${n}`, { ...small, policy });
        const { outcome, hostId } = await session.run('true');
        return { policy, outcome, hostId };
      }),
    );
    expect(hosts).toEqual(
      [0, 1, 2, 3].map((n) =>
        n % 2 === 0
          ? { policy: 'docker', outcome: 'success', hostId: 'h1' }
          : { policy: 'host', outcome: 'success', hostId: 'h2' },
      ),
    );
  });

  test('do not delay sessions of one policy by the queue of another', async () => {
    const holders = await Promise.all([0, 1].map((n) => stack.fleet.session(`holds-${n}`, small)));
    for (const holder of holders) await holder.run('true');
    const waits = await (await stack.fleet.session('waits', small)).submit('true');
    const other = await stack.fleet.session('passes', { ...small, policy: 'host' });
    expect((await other.run('true')).hostId).toBe('h2');
    expect(await infoOf('waits')).toMatchObject({ state: 'queued', position: 1 });
    expect((await infoOf('waits')).noHostReason).toBeUndefined();
    await holders[0]?.close();
    expect((await waits.result()).hostId).toBe('h1');
  });

  // UPKEEP-1
  test('add a session’s lost job again with its class and priority, and keep the order', async () => {
    const holders = await Promise.all([0, 1].map((n) => stack.fleet.session(`busy-${n}`, small)));
    for (const holder of holders) await holder.run('true');
    const submit = async (id: string, priority: number) =>
      (await stack.fleet.session(id, { ...small, priority, labels: { name: id } })).submit('true');
    const [lost, later] = [await submit('lost-its-job', 9), await submit('waits-with-9', 9)];
    const sooner = await submit('waits-with-3', 3);
    const { sessionQueues } = fleetKeys(stack.keyspace);
    const queue = new Queue(sessionsQueue(classOf('docker', stack.sealKey), 'default'), {
      connection: inspector.redis,
      prefix: sessionQueues,
    });
    const jobId = sessionJobId('default', 'lost-its-job');
    const before = await queue.getJob(jobId);
    await queue.remove(jobId);
    const again = await until(
      () => queue.getJob(jobId),
      (job) => job !== undefined,
    );
    expect({ data: again?.data, priority: again?.priority }).toEqual({ data: before?.data, priority: 9 });
    await queue.close();
    const positions = await Promise.all(
      ['waits-with-3', 'waits-with-9', 'lost-its-job'].map(async (id) => (await infoOf(id)).position),
    );
    expect(positions).toEqual([1, 2, 3]);
    for (const holder of holders) await holder.close();
    expect((await sooner.result()).outcome).toBe('success');
    await (await stack.fleet.session('waits-with-3')).close();
    expect([(await later.result()).outcome, (await lost.result()).outcome]).toEqual(['success', 'success']);
  });

  test('report why no live host can run a session, and keep start deadlines', async () => {
    await worker().stop('SIGTERM');
    const session = await stack.fleet.session('nowhere', { ...small, policy: 'host' });
    const waits = await session.submit('echo here');
    const overdue = await session.submit('echo never', { startDeadlineMs: 300 });
    const { noHostReason } = await until(
      () => infoOf('nowhere'),
      (info) => info.noHostReason !== undefined,
      10_000,
    );
    expect(noHostReason).toBe(NO_HOST);
    expect(await infoOf('nowhere')).toMatchObject({ state: 'queued', queuedCommands: 2, position: 1 });
    const cli = new FleetCli(stack);
    const queue = (await cli.run(['queue'])).stdout.toString();
    expect(queue).toMatch(new RegExp(`1 +nowhere +queued +\\d +- +${RegExp.escape(NO_HOST)}`));
    expect((await cli.run(['ps'])).stdout.toString()).toMatch(/^nowhere +queued #1 .*Z {2}No [^.]*[^.]$/m);

    expect(await overdue.result()).toEqual(
      expectedResult('nowhere', {
        outcome: 'timeout',
        exitCode: null,
        reason: 'not-started',
        hostId: null,
        shell: { state: 'kept', epoch: 0 },
      }),
    );
    await worker().start();
    expect(await waits.result()).toMatchObject({ outcome: 'success', stdout: 'here\n', hostId: 'h2' });
    expect((await infoOf('nowhere')).noHostReason).toBeUndefined();
  });

  test('hand sessions to a host that offers the policy when they stop offering it', async () => {
    const session = await stack.fleet.session('left', { ...small, policy: 'host' });
    expect(await session.run('kept=yes; echo $kept')).toMatchObject({ outcome: 'success', hostId: 'h2' });
    await worker().stop('SIGTERM');
    const waits = await session.submit('echo ${kept:-lost}');
    await worker().start({ SHELLFLEET_POLICIES: 'docker', DOCKER_HOST: inject('dockerHost') });
    await until(
      () => infoOf('left'),
      ({ state, noHostReason }) => state === 'lost' && noHostReason === NO_HOST,
    );
    await restartHost();
    expect(await waits.result()).toMatchObject({ outcome: 'success', stdout: 'lost\n', hostId: 'h2' });
  });

  test('refuse a session whose job was changed in Redis, and run nothing of it', async () => {
    const holders = await Promise.all([0, 1].map((n) => stack.fleet.session(`fills-${n}`, small)));
    for (const holder of holders) await holder.run('true');
    const session = await stack.fleet.session('moved', { ...small, labels: { team: 'build' } });
    const commands = [await session.submit('touch /tmp/ran; echo ran'), await session.submit('echo too')];
    const { sessionQueues, queues } = fleetKeys(stack.keyspace);
    const jobId = sessionJobId('default', 'moved');
    const sealedWith = sealedWithKey(stack.sealKey);
    const docker = new Queue(sessionsQueue(classOf('docker', stack.sealKey), 'default'), {
      connection: inspector.redis,
      prefix: sessionQueues,
    });
    const host = new Queue(sessionsQueue(classOf('host', stack.sealKey), 'default'), {
      connection: inspector.redis,
      prefix: sessionQueues,
    });
    const job = await docker.getJob(jobId);
    const state = await inspector.redis.hgetall(sessionKeys(stack.keyspace, 'default', 'moved').state);
    // The job has the data for routing in clear, and the spec sealed.
    expect(job?.data).toEqual({
      generation: state.generation,
      policy: 'docker',
      priority: 0,
      labels: { team: 'build' },
      sealedWith,
    });
    const placement = { policy: 'docker', labels: { team: 'build' }, sealedWith };
    expect(JSON.parse(state.placement ?? '')).toEqual(placement);
    await docker.remove(jobId);
    await host.add('session', { ...job?.data, policy: 'host' }, { jobId, removeOnComplete: true, removeOnFail: true });
    await inspector.redis.zadd(queues, 0, host.name);
    for (const command of commands) {
      expect(await command.result()).toMatchObject({
        outcome: 'error',
        exitCode: null,
        stdout: '',
        error: { code: 'SESSION_SPEC_INVALID', message: expect.stringContaining('queue, policy') },
        shell: { state: 'kept', epoch: 0 },
      });
    }
    expect(
      await until(
        () => host.getJob(jobId),
        (left) => left === undefined,
      ),
    ).toBeUndefined();
    expect(worker().log).toContain('session.refused');

    // The job is changed while the session waits.
    const again = await session.submit('echo ran');
    await until(
      () => docker.getJob(jobId),
      (found) => found !== undefined,
    );
    const data = JSON.stringify({ ...job?.data, priority: 1 });
    await inspector.redis.hset(
      `${sessionQueues}:${sessionsQueue(classOf('docker', stack.sealKey), 'default')}:${jobId}`,
      'data',
      data,
    );
    await holders[0]?.close();
    expect(await again.result()).toMatchObject({ outcome: 'error', error: { code: 'SESSION_SPEC_INVALID' } });
    // Upkeep removes the refused job and adds one from the sealed spec, which a host accepts.
    await until(
      () => docker.getJob(jobId),
      (left) => left === undefined,
    );
    expect(await session.run('echo ran')).toMatchObject({ outcome: 'success', stdout: 'ran\n', hostId: 'h1' });
    await Promise.all([docker.close(), host.close()]);
  });
});
