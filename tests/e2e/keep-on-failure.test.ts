import { text } from 'node:stream/consumers';
import type { SessionInfo, SessionSpec } from '@shellfleet/client';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// S0-38. The host keeps two containers, and each for a day.

const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 10, env: { SHELLFLEET_KEEP_CONTAINERS: '2' } });
});
afterAll(async () => {
  for (const { id } of await listed()) await stack.fleet.purge(id);
  await stack?.[Symbol.asyncDispose]();
});

async function listed(): Promise<SessionInfo[]> {
  const all: SessionInfo[] = [];
  for await (const info of stack.fleet.sessions()) if (info.kept !== undefined) all.push(info);
  return all.sort((a, b) => (a.id < b.id ? -1 : 1));
}
const keptIds = async () => (await listed()).map(({ id }) => id);
const containers = async () =>
  docker.listContainers({ all: true, filters: { label: [`shellfleet.namespace=${stack.namespace}`] } });

/** Runs a script in a session of its own and closes it. */
async function endAfter(id: string, script: string, spec: SessionSpec = { keepOnFailure: true }): Promise<void> {
  const session = await stack.fleet.session(id, spec);
  await session.run(script, { timeoutMs: 5_000 });
  await session.close();
}

/** Returns the archive of a file, as `docker cp` reads it. */
const readArchive = async (containerId: string, path: string) =>
  text(await docker.getContainer(containerId).getArchive({ path }));

describe('a container that is kept for a post-mortem', () => {
  test('belongs to a closed session whose last command failed, and is stopped with its files', async () => {
    await endAfter('failed', 'echo evidence > /workspace/file; sleep 1000 & exit 3');
    const [info] = await listed();
    expect(info).toMatchObject({
      id: 'failed',
      state: 'closed',
      kept: [{ hostId: 'h1', keptAt: expect.any(String), reason: 'its last command ended as failure' }],
    });
    const containerId = info?.kept?.[0]?.containerId ?? '';
    expect((await docker.getContainer(containerId).inspect()).State.Running).toBe(false);
    expect(await readArchive(containerId, '/workspace/file')).toContain('evidence\n');
    await expect(docker.getContainer(containerId).start()).rejects.toThrow();

    // The id is free, and its new generation has a container of its own.
    await endAfter('failed', 'test ! -e /workspace/file');
    expect(await listed()).toEqual([
      { ...info, createdAt: expect.any(String), lastActiveAt: expect.any(String), closedAt: expect.any(String) },
    ]);
  });

  test('is neither adopted by the next worker nor swept, and goes with close --purge', async () => {
    const [before] = await listed();
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    await endAfter('after', 'true');
    expect(await listed()).toEqual([before]);
    const cli = new FleetCli(stack);
    expect((await cli.text(['ps'])).stdout).toMatch(/^failed +closed, kept/m);
    expect(await cli.text(['close', 'failed', '--purge'])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'shellfleet: failed was not open.\nshellfleet: The container that was kept of failed: removed.\n',
    });
    expect([await listed(), await containers()]).toEqual([[], []]);
  });

  test('belongs to a lost shell; success, cancellation and other sessions leave none', async () => {
    const lost = await stack.fleet.session('lost', { keepOnFailure: true });
    await lost.run('echo here > /tmp/file');
    const [container] = await containers();
    await docker.getContainer(container?.Id ?? '').kill();
    expect(await lost.run('echo on')).toMatchObject({ stdout: 'on\n', shell: { epoch: 2 } });
    expect(await listed()).toMatchObject([{ id: 'lost', state: 'ready', kept: [{ containerId: container?.Id }] }]);
    await lost.close();
    await endAfter('fine', 'exit 3; true', {});
    await endAfter('well', 'true');
    const cancelled = await stack.fleet.session('cancelled', { keepOnFailure: true });
    await (await cancelled.submit('sleep 100')).cancel();
    await cancelled.close();
    expect(await keptIds()).toEqual(['lost']);
  });

  test('is removed for newer ones beyond the number that the operator allows', async () => {
    for (const id of ['one', 'two']) await endAfter(id, 'exit 1');
    await until(keptIds, (ids) => ids.join() === 'one,two');
    expect((await containers()).map(({ State }) => State)).toEqual(['exited', 'exited']);
  });

  test('makes the session wait where no operator allows it, with the setting as reason', async () => {
    await stack.workers[0]?.stop('SIGINT');
    await stack.workers[0]?.start({ SHELLFLEET_KEEP_CONTAINERS: '0' });
    const session = await stack.fleet.session('refused', { keepOnFailure: true });
    await session.submit('true');
    const { noHostReason } = await until(
      () => session.info(),
      (info) => info.noHostReason !== undefined,
    );
    expect(noHostReason).toContain('SHELLFLEET_KEEP_CONTAINERS');
    await session.close();
  });
});
