import { readFile, stat } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { filesOf, isRoot, keeperOf, processesOf } from '../support/host-leftovers.ts';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { startInspectedFleet } from '../support/inspected-fleet.ts';
import { startFleet, type TestFleet, type TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// No engine supervises a shell of policy host. It outlives its worker nevertheless, and the next worker adopts it.

const UID = 4713;
describe.runIf(isRoot)('a shell of policy host', () => {
  let stack: TestFleet;
  let worker: TestWorker;
  let inspect: FleetInspector;
  beforeEach(async () => {
    ({ stack, worker, inspect } = await startInspectedFleet({
      env: {
        DOCKER_HOST: 'unix:///nonexistent/docker.sock',
        SHELLFLEET_POLICIES: 'host',
        SHELLFLEET_HOST_USER: String(UID),
      },
    }));
  });
  afterEach(async () => {
    const leftovers = async () => [...(await processesOf(UID)), ...(await filesOf(stack.stateDirectory))];
    await until(leftovers, (left) => left.length === 0).finally(() => stack?.[Symbol.asyncDispose]());
    await inspect[Symbol.asyncDispose]();
  });

  const open = (id: string) => stack.fleet.session(id, { policy: 'host' });

  describe('after kill -9 of the worker', () => {
    test('keeps its state, and its command is adopted with its exact output', async () => {
      const session = await open('adopted');
      await session.run('kept=yes');
      const script = 'for i in $(seq 1 40); do echo "line $i"; sleep 0.05; done; printf end >&2; exit 7';
      const command = await session.submit(script);
      await until(
        async () => (await session.info()).runningCommandId,
        (id) => id === command.id,
      );
      const keeper = await keeperOf(UID);
      await worker.kill();
      expect(await keeperOf(UID)).toBe(keeper);
      await worker.start();
      const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join('');
      expect(await command.result()).toMatchObject({ outcome: 'failure', exitCode: 7, stdout: lines, stderr: 'end' });
      expect(await session.run('echo $kept')).toMatchObject({ stdout: 'yes\n', shell: { state: 'kept', epoch: 1 } });
      expect(await keeperOf(UID)).toBe(keeper);
      expect(await inspect.broken('adopted', [command.id])).toEqual([]);
      await session.close();
    });

    test('has the Result of a command that ended without a worker, with megabytes of output', async () => {
      const session = await open('ended');
      await session.run('true');
      const command = await session.submit('sleep 0.3; head -c 3000000 /dev/zero | tr "\\0" x; echo done > over');
      await until(
        async () => (await session.info()).runningCommandId,
        (id) => id === command.id,
      );
      await worker.kill();
      const workspace = (await filesOf(stack.stateDirectory)).find((path) => path.includes('/w/shellfleet-'));
      await until(
        () => readFile(`${workspace}/over`, 'utf8').catch(() => ''),
        (text) => text === 'done\n',
      );
      await worker.start();
      expect(await command.result()).toMatchObject({ outcome: 'success', totals: { stdoutBytes: 3_000_000 } });
      await session.close();
    });

    test('is removed by the next worker when it belongs to no session', async () => {
      const session = await open('swept');
      await session.run('(setsid sleep 5432 &); echo file > file');
      const before = await filesOf(stack.stateDirectory);
      expect(before.length).toBeGreaterThan(3);
      await worker.kill();
      await session.close();
      expect(await filesOf(stack.stateDirectory)).toEqual(before);
      await worker.start();
      await until(
        () => filesOf(stack.stateDirectory),
        (files) => files.length === 0,
      );
      expect(await processesOf(UID)).toEqual([]);
    });
  });

  describe('after kill -9 of the keeper', () => {
    test('loses the running command; the next command gets a fresh shell and reports that', async () => {
      const session = await open('lost');
      await session.run('kept=yes; echo old > file; (setsid sleep 4321 &)');
      const workspace = (await filesOf(stack.stateDirectory)).find((path) => path.includes('/w/shellfleet-')) ?? '';
      const command = await session.submit('echo part; sleep 100');
      await until(
        async () => (await session.info()).runningCommandId,
        (id) => id === command.id,
      );
      const from = Date.now();
      process.kill(await keeperOf(UID), 'SIGKILL');
      const result = await command.result();
      expect(Date.now() - from).toBeLessThan(2_000);
      expect(result).toMatchObject({
        outcome: 'error',
        reason: 'container-removed',
        error: { code: 'CONTAINER_LOST', message: expect.stringContaining('was killed') },
      });
      expect(await session.run('echo "[$kept]"; cat file 2>&1')).toMatchObject({
        stdout: expect.stringMatching(/^\[\]\n.*No such file/),
        shell: { state: 'lost', epoch: 2 },
      });
      await expect(stat(workspace)).rejects.toMatchObject({ code: 'ENOENT' });
      await session.close();
    });

    test('is replaced in the same way when the worker is away', async () => {
      const session = await open('lost-unseen');
      await session.run('kept=yes');
      await worker.kill();
      process.kill(await keeperOf(UID), 'SIGKILL');
      await until(
        () => processesOf(UID),
        (pids) => pids.length === 0,
      );
      await worker.start();
      expect(await session.run('echo "[$kept]"')).toMatchObject({ stdout: '[]\n', shell: { state: 'lost', epoch: 2 } });
      await session.close();
    });
  });

  describe('on a host with both policies', () => {
    // S0-07
    test('runs next to containers, and both are adopted after kill -9 of the worker', async () => {
      await using both = await startFleet({
        env: { SHELLFLEET_POLICIES: 'docker,host', SHELLFLEET_HOST_USER: String(UID) },
      });
      const session = await both.fleet.session('on-host', { policy: { type: 'host' } });
      const contained = await both.fleet.session('in-container', { policy: 'docker' });
      expect((await session.run('kept=host; id -u')).stdout).toBe(`${UID}\n`);
      expect((await contained.run('kept=docker; id -u')).stdout).toBe('1000\n');
      expect((await both.fleet.hosts()).map(({ policies }) => policies)).toEqual([['docker', 'host']]);
      await expect(both.fleet.session('on-host', { policy: 'docker' })).rejects.toMatchObject({
        code: 'SESSION_CONFLICT',
      });
      await both.workers[0]?.kill();
      await both.workers[0]?.start();
      expect(await session.run('echo $kept')).toMatchObject({ stdout: 'host\n', shell: { state: 'kept', epoch: 1 } });
      expect(await contained.run('echo $kept')).toMatchObject({
        stdout: 'docker\n',
        shell: { state: 'kept', epoch: 1 },
      });
      await Promise.all([session.close(), contained.close()]);
    });

    test('does not start a worker that cannot offer its policy, and gives the reason', async () => {
      const env = { SHELLFLEET_POLICIES: 'docker,host', SHELLFLEET_HOST_USER: 'root' };
      await expect(startFleet({ env })).rejects.toThrow(/cannot offer the host policy: its sessions never run as root/);
      await expect(startFleet({ env: { SHELLFLEET_POLICIES: 'host' } })).rejects.toThrow(
        /sessions need a user of their own/,
      );
    });
  });
});
